"""Cheats that poison: flipped and scaled messages, false labels, one class taken for another.

They cost their owner what she sold: who poisons does not want to keep privacy but to do harm.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.errors import InputError
from flmarket_sim.strategy.cheats.cheat import Floats, Plan, SaleView

ClassNumber = Annotated[int, Field(ge=0, le=10**6)]


class SignFlip:
    """Releases the opposite of her gradient. It is as private and as long as an honest one.

    `scale` multiplies the message after the perturbation, for who wants to weigh more than others.
    """

    name = "sign-flip"

    def __init__(
        self, scale: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] = 1.0
    ) -> None:
        self.scale = scale

    def plan(self, view: SaleView) -> Plan:
        return Plan(scale=np.full(len(view.owners), self.scale))

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return -updates


class LabelFlip:
    """Trains on her records with every class c taken for the class (c + 1) mod classes."""

    name = "label-flip"
    false_labels = True

    def plan(self, view: SaleView) -> Plan:
        return Plan(labels=np.roll(np.arange(view.rules.classes), -1))

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return updates


class TargetedPoison:
    """Trains on her records with one class, `source`, taken for another one, `target`."""

    name = "targeted-poison"
    false_labels = True

    def __init__(self, source: ClassNumber = 1, target: ClassNumber = 0) -> None:
        if source == target:
            raise InputError("targeted-poison: source and target must be two classes")
        self.source, self.target = source, target
        self.largest_class = max(source, target)

    def plan(self, view: SaleView) -> Plan:
        classes = view.rules.classes
        if self.largest_class >= classes:
            raise InputError(
                f"targeted-poison: there is no class {self.largest_class}; "
                f"the classes of this data set are 0 to {classes - 1}"
            )
        labels = np.arange(classes)
        labels[self.source] = self.target
        return Plan(labels=labels)

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return updates
