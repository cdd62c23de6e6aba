"""How much misreports pay, by mechanism and budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flmarket_sim.owners.population import draw_markets
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.strategy.probe import probe
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Factors,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    auction_of,
    heavy_tailed,
    spread,
)


@dataclass(frozen=True)
class MisreportGain:
    """The best misreport found for every owner, at several budget factors.

    All auctions meet the same markets.
    """

    name = "misreport-gain"
    auctions: Auctions
    factors: Factors = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0)
    profiles: Count = 100
    effort: SearchEffort = "standard"

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": name, "factor": factor, "profiles": self.profiles, "effort": self.effort}
            for name in self.auctions
            for factor in self.factors
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth, _ = draw_markets(scenario, work["profiles"], None, scenario.seed)
        budget = work["factor"] * truth.total_value()
        result = probe(
            auction_of(work["auction"], scenario),
            truth,
            budget,
            seed=scenario.seed,
            effort=work["effort"],
        )
        gaining = result.relative_gain > 0.01
        row = {
            "auction": work["auction"],
            "budget_factor": work["factor"],
            "markets": work["profiles"],
        }
        row |= spread("gain_over_cost", result.mean_relative_gain())
        row |= heavy_tailed("gain_over_cost", result.relative_gain, truth.population)
        row |= spread("share_gaining", result.share_gaining())
        for part, is_false in result.false_parts().items():
            row[f"false_{part}"] = float(is_false[gaining].mean()) if gaining.any() else 0.0
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        axis = "budget / value of everything for sale"
        plot = Plot("budget_factor", "gain_over_cost", "auction", axis, "mean gain / cost")
        sentences = [
            _sentence(name, [row for row in rows if row["auction"] == name])
            for name in self.auctions
        ]
        shown = (
            "auction",
            "budget_factor",
            "gain_over_cost",
            "share_gaining",
            "gain_over_cost_median",
        )
        return Finding(rows, plot, sentences, shown=shown)


def _sentence(name: str, rows: list[Row]) -> str:
    mean = float(np.mean([row["gain_over_cost"] for row in rows]))
    share = float(np.mean([row["share_gaining"] for row in rows]))
    return (
        f"{name}: the best misreports found earn {mean:.2f} of cost on average; "
        f"{share:.0%} of owners gain more than 1 %"
    )
