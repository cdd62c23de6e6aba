"""The best report by search: against the bidders as they truly are, or against bidders drawn from
the population."""

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
    """Searches the report that pays best if the others tell the truth; `knows` their types
    ("others") or the "prior" alone.

    With the prior, one report has to do well on average in `samples` markets of owners drawn by
    lot. Every owner thinks that she is the only liar, and answers to what she believes; she cannot
    know who will be away.
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
        found = best_reports(
            view.auction,
            markets,
            markets.bids(view.levels),
            np.full(markets.shape[0], view.budget),
            view.slots,
            effort=self.effort,
            seed=int(view.rng.integers(2**31)),
            samples=samples,
        )
        return BehaviourReports(found.values, found.privacy_budget, found.data_size)


def _markets(view: CohortView) -> Profiles:
    """(k, n) the market as it is, once for each liar."""
    return view.asked.take(np.zeros(len(view.owners), np.int64))


def _imagined(view: CohortView, samples: int) -> Profiles:
    """(k samples, n) markets with the liar in her own column and owners drawn by lot, but not
    herself, in the others."""
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
    row, mine = np.arange(k * samples), np.repeat(view.slots, samples)
    columns = []
    for drawn_column, true_column in (
        (drawn.family, view.asked.family),
        (drawn.rate, view.asked.rate),
        (drawn.privacy_budget, view.asked.privacy_budget),
        (drawn.data_size, view.asked.data_size),
    ):
        column = drawn_column.copy()
        column[row, mine] = true_column[0, mine]
        columns.append(column)
    return Profiles(*columns)
