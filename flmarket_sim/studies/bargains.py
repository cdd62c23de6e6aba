"""Which owners are worth buying from, as the dimension grows.

The owners of a market are ranked by their number of records and cut into as many equal groups as
asked for. The question is how a buyer who knows everything (first-best) spends her money on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.owners.population import draw_profiles
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.studies.regimes import Kappas
from flmarket_sim.studies.study import Count, Finding, Plot, Row, Work, spread

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bargains:
    """Where the best purchase found spends its money, by the size of owners and kappa.

    money_share     of all money spent, that for the owners of a group
    sold_share      of the privacy budgets of a group, what is bought
    records_share   of all records, those of the group
    """

    name = "bargains"
    kappas: Kappas = (8.0, 80.0, 800.0, 4920.0, 100_000.0)
    factor: Annotated[float, Field(gt=0)] = 0.3
    groups: Annotated[int, Field(ge=2, le=10)] = 3
    profiles: Count = 200

    def tasks(self, scenario: Scenario) -> list[Work]:
        options = {"factor": self.factor, "groups": self.groups, "profiles": self.profiles}
        return [options | {"kappa": kappa} for kappa in self.kappas]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth = draw_profiles(scenario, work["profiles"])
        budget = work["factor"] * truth.total_value()
        bought = first_best(truth, budget, error=error_of_kappa(work["kappa"]))
        money = truth.value(bought.privacy_loss)
        group = size_groups(truth.data_size, work["groups"])
        rows = []
        for number in range(work["groups"]):
            inside = group == number
            row: Row = {"kappa": work["kappa"], "group": _label(number, work["groups"])}
            for name, part, whole in (
                ("money_share", money * inside, money),
                ("sold_share", bought.privacy_loss * inside, truth.privacy_budget * inside),
                ("records_share", truth.data_size * inside, truth.data_size),
            ):
                share = part.sum(axis=1) / np.maximum(whole.sum(axis=1), 1e-300)
                row |= spread(name, estimate(share, truth.population))
            rows.append(row)
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        plot = Plot(
            "kappa",
            "sold_share",
            "group",
            "kappa",
            "share of the privacy that is bought",
            log_x=True,
        )
        small = [row for row in rows if row["group"] == _label(0, self.groups)]
        sentences = [
            f"kappa = {row['kappa']:g}: first-best buys {row['sold_share']:.0%} of the privacy of "
            f"the smallest owners, for {row['money_share']:.0%} of its money"
            for row in (small[0], small[-1])
        ]
        shown = ("kappa", "group", "money_share", "sold_share", "records_share")
        return Finding(rows, plot, sentences, shown=shown)


def size_groups(data_size: Floats, groups: int) -> NDArray[np.int64]:
    """(K, n) the group of each owner in her market by rank of records, from 0 for the smallest."""
    n = data_size.shape[1]
    order = np.argsort(data_size, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(n)[None], axis=1)
    return np.asarray(ranks * groups // n, np.int64)


def _label(number: int, groups: int) -> str:
    if number in (0, groups - 1):
        return "smallest" if number == 0 else "largest"
    return "middle" if groups == 3 else f"group {number + 1}"
