"""Is it cheaper to buy the same error in several purchases? The question that the paper leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.strategy.arbitrage import price_of_the_same
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Progress, markets, spread

Several = Annotated[Sequence[Annotated[int, Field(ge=2)]], Field(min_length=1)]


class Arbitrage:
    """Money that k purchases need for the mean error of one: below 1, a buyer does better by splitting.

    Markets are cut into `groups`, each gives one price, and the interval is over groups.
    """

    name = "arbitrage"

    def __init__(
        self, auctions: Names, purchases: Several = (2, 4), profiles: Count = 400, groups: Count = 8
    ) -> None:
        self.auctions = {name: named(name) for name in auctions}
        if groups > profiles:
            raise InputError(
                f"{groups} groups need as many markets at least; study.profiles is {profiles}"
            )
        self.purchases, self.profiles, self.groups = list(purchases), profiles, groups

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        truth, budget = markets(scenario, self.profiles)
        parts = np.array_split(np.arange(self.profiles), self.groups)
        rule = scenario.aggregation.name
        rows, said, done = [], [], 0
        total = len(self.auctions) * len(self.purchases) * 2
        for name, auction in self.auctions.items():
            for remember in (True, False):
                for count in self.purchases:
                    prices = np.array(
                        [
                            price_of_the_same(
                                auction,
                                truth.take(part),
                                budget[part],
                                count,
                                remember=remember,
                                rule=rule,
                            )
                            for part in parts
                        ]
                    )
                    row: dict[str, Any] = {
                        "auction": name,
                        "owners": "remember" if remember else "forget",
                        "purchases": count,
                    }
                    row |= spread("budget_ratio", from_seeds(prices[:, 0])) | spread(
                        "spending_ratio", from_seeds(prices[:, 1])
                    )
                    row["never_reached"] = int(np.isnan(prices[:, 0]).sum())
                    rows.append(row)
                    done += 1
                    progress(done, total)
            mine = {
                (row["owners"], row["purchases"]): row["spending_ratio"]
                for row in rows
                if row["auction"] == name
            }
            first = self.purchases[0]
            said.append(
                f"{name}: {first} purchases of the same error cost {mine['remember', first]:.2f} times as much if owners remember, "
                f"{mine['forget', first]:.2f} times if they forget"
            )
        bars = [
            {
                "auction": row["auction"],
                "owners": f"owners {row['owners']}",
                "price": row["spending_ratio"],
                "price_low": row["spending_ratio_low"],
                "price_high": row["spending_ratio_high"],
            }
            for row in rows
            if row["purchases"] == self.purchases[0]
        ]
        label = f"money paid in {self.purchases[0]} purchases / in one"
        plot = Plot("auction", "price", "owners", "", label, bars=True, level=1.0)
        return Finding(rows, plot, said, bars)
