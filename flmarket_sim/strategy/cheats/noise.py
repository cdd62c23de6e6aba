"""Cheats with noise: more of it than was sold, or nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from flmarket_sim.strategy.cheats.cheat import Floats, Plan, SaleView

Above = Annotated[float, Field(gt=1, le=1e6, allow_inf_nan=False)]


class MoreNoise:
    """Perturbs as if she had sold the share 1 / factor of her privacy loss, and keeps the rest.

    With additive noise, the noise of every coordinate is `factor` times as large.
    """

    name = "more-noise"

    def __init__(self, factor: Above = 4.0) -> None:
        self.factor = factor

    def plan(self, view: SaleView) -> Plan:
        return Plan(released_at=view.privacy_loss / self.factor)

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return updates


class NothingButNoise:
    """Releases a random direction, drawn anew, at the privacy loss that she sold.

    The message is what the perturbation makes of some gradient, so it has the right size, and it
    says nothing about her records.
    """

    name = "nothing-but-noise"

    def plan(self, view: SaleView) -> Plan:
        return Plan(lost=0.0 * view.privacy_loss)

    def updates(self, view: SaleView, updates: Floats) -> Floats:
        return random_directions(view)


def random_directions(view: SaleView) -> Floats:
    """(k, D) independent directions without a preference, as long as a gradient may be."""
    drawn = view.rng.standard_normal((len(view.owners), view.rules.dimension))
    return drawn * view.rules.clip
