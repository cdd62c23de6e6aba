"""The best report by search: against the true bidders, or against bidders of the population."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flmarket_sim.owners.bids import Profiles
from flmarket_sim.strategy.behaviours.behaviour import BehaviourReports, CohortView, Ints
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import effort_of

Knowledge = Literal["others", "prior"]
Samples = Annotated[int, Field(ge=1, le=1000)]


class BestResponse:
    """Reports what pays best if all others tell the truth, by search.

    `knows` is "others" (their true types) or "prior" (the population). With the prior, one report
    must do well on average in `samples` markets of random owners. Every owner believes that she is
    the only liar, and does not know who will be absent.
    """

    name = "best-response"

    def __init__(
        self, knows: Knowledge = "others", samples: Samples = 8, effort: str = "quick"
    ) -> None:
        effort_of(effort)
        self.knows, self.samples, self.effort = knows, samples, effort

    def report(self, view: CohortView) -> BehaviourReports:
        samples = 1 if self.knows == "others" else self.samples
        markets = _markets(view) if self.knows == "others" else _imagined(view, samples)
        best = best_reports(
            view.auction,
            markets,
            markets.bids(view.levels),
            np.full(markets.shape[0], view.budget),
            view.slots,
            effort=self.effort,
            seed=int(view.rng.integers(2**31)),
            samples=samples,
        )
        return BehaviourReports(
            best.values, best.privacy_budget, best.data_size, stated=best.stated
        )


def _markets(view: CohortView) -> Profiles:
    """(k, n) the market as it is, once for each liar."""
    return view.asked.take(np.zeros(len(view.owners), np.int64))


def _imagined(view: CohortView, samples: int) -> Profiles:
    """(k samples, n) markets with the liar in her own column and random other owners elsewhere."""
    people, k, n = view.population, len(view.owners), view.asked.shape[1]
    chosen: Ints = np.repeat(view.owners, samples * n).reshape(k, samples, n)
    for me, slot, markets in zip(view.owners.tolist(), view.slots.tolist(), chosen, strict=True):
        for market in markets:
            others = (
                view.rng.choice(len(people) - 1, n - 1, replace=False)
                if n > 1
                else np.zeros(0, np.int64)
            )
            market[np.arange(n) != slot] = others + (others >= me)
    drawn = people.profiles(chosen.reshape(k * samples, n))
    row, slot_of_liar = np.arange(k * samples), np.repeat(view.slots, samples)
    columns = []
    for drawn_column, true_column in (
        (drawn.family, view.asked.family),
        (drawn.rate, view.asked.rate),
        (drawn.privacy_budget, view.asked.privacy_budget),
        (drawn.data_size, view.asked.data_size),
    ):
        column = drawn_column.copy()
        column[row, slot_of_liar] = true_column[0, slot_of_liar]
        columns.append(column)
    return Profiles(*columns)
