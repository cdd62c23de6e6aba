"""Behaviours without memory or foresight: the truth, and fixed distortions of it."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import LARGEST_EXPONENTIAL, TOO_EXPONENTIAL
from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, CohortView, Floats


def _known(family: str) -> str:
    try:
        registry.families.create(family)
    except InputError as error:
        raise ValueError(str(error)) from None
    return family


FamilyName = Annotated[str, AfterValidator(_known)]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Part = Annotated[float, Field(gt=0, le=1)]


def distorted(
    view: CohortView, factor: Floats, budget_share: Floats, size_share: Floats
) -> BehaviourReports:
    """True values times `factor`, for shares of the true budget and of the records (whole, at least
    1); each (k,)."""
    budget = view.privacy_budget * budget_share
    size = np.maximum(1.0, np.floor(view.data_size * size_share))
    same = (budget_share == 1.0) & (size == view.data_size)
    with np.errstate(over="ignore"):  # beyond all numbers: refused as such
        values = np.where(same[:, None], view.values, view.valued(budget, size)) * factor[:, None]
    family = view.truth.family[0]
    rate = np.where(
        family == valuation.STEP, values[:, -1] / (budget * size), view.truth.rate[0] * factor
    )
    return BehaviourReports(values, budget, size, family=family, rate=rate)


class Truthful:
    """Reports the truth: a named share of owners for comparison."""

    name = "truthful"

    def report(self, view: CohortView) -> BehaviourReports:
        one = np.ones(len(view.owners))
        return distorted(view, one, one, one)


class Scale:
    """Asks `factor` times her true values."""

    name = "scale"

    def __init__(self, factor: Factor) -> None:
        self.factor = factor

    def report(self, view: CohortView) -> BehaviourReports:
        one = np.ones(len(view.owners))
        return distorted(view, one * self.factor, one, one)


class Shade:
    """Reports a share of her privacy budget or records, with true values of what is left."""

    name = "shade"

    def __init__(self, privacy_budget: Part = 1.0, data_size: Part = 1.0) -> None:
        self.privacy_budget, self.data_size = privacy_budget, data_size

    def report(self, view: CohortView) -> BehaviourReports:
        one = np.ones(len(view.owners))
        return distorted(view, one, one * self.privacy_budget, one * self.data_size)


class Pretend:
    """Bids as an owner of another family with her rate, times `factor`."""

    name = "pretend"

    def __init__(self, family: FamilyName, factor: Factor = 1.0) -> None:
        self.family, self.factor = family, factor

    def report(self, view: CohortView) -> BehaviourReports:
        if self.family == "exponential" and view.privacy_budget.max() > LARGEST_EXPONENTIAL:
            raise InputError(f"behaviour 'pretend': {TOO_EXPONENTIAL}")
        family = np.repeat(valuation.family_codes([self.family]), len(view.owners))
        rate, size, budget = view.truth.rate[0] * self.factor, view.data_size, view.privacy_budget
        values = OwnerTypes(family, rate, budget, size).table(view.levels)
        return BehaviourReports(values, budget, size, family=family, rate=rate)
