"""Is it cheaper to buy the same error in several purchases? The paper leaves this question open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.errors import InputError
from flmarket_sim.owners.population import sample_populations
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.strategy.arbitrage import price_of_the_same
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Finding,
    Plot,
    Row,
    Work,
    auction_of,
    markets,
    spread,
)

Several = Annotated[Sequence[Annotated[int, Field(ge=2)]], Field(min_length=1)]


@dataclass(frozen=True)
class Arbitrage:
    """The money that k purchases need for the mean error of one purchase.

    Below 1, a buyer does better by splitting. The study deals the populations out to `groups`; each
    group gives one price, and the interval is Student's over groups.
    """

    name = "arbitrage"
    auctions: Auctions
    purchases: Several = (2, 4)
    profiles: Count = 400
    groups: Count = 8

    def __post_init__(self) -> None:
        if self.groups > sample_populations(self.profiles):
            raise InputError(
                f"{self.groups} groups need as many populations, each with two markets at least; "
                f"study.profiles is {self.profiles}"
            )

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": name, "owners": owners, "purchases": count}
            | {"profiles": self.profiles, "groups": self.groups}
            for name in self.auctions
            for owners in ("remember", "forget")
            for count in self.purchases
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth, budget = markets(scenario, work["profiles"])
        auction, error = auction_of(work["auction"], scenario), scenario_error(scenario)
        prices = np.array(
            [
                price_of_the_same(
                    auction,
                    truth.take(group),
                    budget[group],
                    work["purchases"],
                    remember=work["owners"] == "remember",
                    rule=scenario.aggregation.name,
                    error=error,
                )
                for group in (truth.population % work["groups"] == g for g in range(work["groups"]))
            ]
        )
        row = {key: work[key] for key in ("auction", "owners", "purchases")}
        row |= spread("budget_ratio", from_seeds(prices[:, 0]))
        row |= spread("spending_ratio", from_seeds(prices[:, 1]))
        row["never_reached"] = int(np.isnan(prices[:, 0]).sum())
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        first = self.purchases[0]
        fewest = [row for row in rows if row["purchases"] == first]
        bars = [
            {"auction": row["auction"], "owners": f"owners {row['owners']}"}
            | {f"price{end}": row[f"spending_ratio{end}"] for end in ("", "_low", "_high")}
            for row in fewest
        ]
        price = {(row["auction"], row["owners"]): row["spending_ratio"] for row in fewest}
        sentences = [
            f"{name}: {first} purchases of the same error cost {price[name, 'remember']:.2f} times "
            f"as much if owners remember, {price[name, 'forget']:.2f} times if they forget"
            for name in self.auctions
        ]
        label = f"money paid in {first} purchases / in one"
        plot = Plot("auction", "price", "owners", "", label, bars=True, level=1.0)
        shown = (
            "auction",
            "owners",
            "purchases",
            "spending_ratio",
            "budget_ratio",
            "never_reached",
        )
        return Finding(rows, plot, sentences, bars, shown=shown)
