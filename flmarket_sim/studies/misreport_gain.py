"""How much lying pays, by mechanism and budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.auctions import named
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import Count, Factors, Finding, Names, Plot, Progress, spread


class MisreportGain:
    """The best lie found for every owner, at several budget factors, for several auctions on the same markets."""

    name = "misreport-gain"

    def __init__(
        self,
        auctions: Names,
        factors: Factors = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0),
        profiles: Count = 100,
        effort: str = "standard",
    ) -> None:
        effort_of(effort)
        self.auctions = {name: named(name) for name in auctions}
        self.factors, self.profiles, self.effort = list(factors), profiles, effort

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        rows: list[dict[str, Any]] = []
        total = len(self.auctions) * len(self.factors)
        truth, _ = draw_markets(scenario, self.profiles, None, scenario.seed)
        for place, (name, auction) in enumerate(self.auctions.items()):
            for number, factor in enumerate(self.factors):
                found = probe(
                    auction,
                    truth,
                    factor * truth.total_value(),
                    seed=scenario.seed,
                    effort=self.effort,
                )
                notable = found.share_gaining()
                false = {
                    part: mask[found.relative_gain > 0.01]
                    for part, mask in found.false_parts().items()
                }
                rows.append(
                    {"auction": name, "budget_factor": factor, "markets": self.profiles}
                    | spread("gain_over_cost", estimate(found.relative_gain.mean(axis=1)))
                    | spread("share_gaining", notable)
                    | {
                        f"false_{part}": float(mask.mean()) if len(mask) else 0.0
                        for part, mask in false.items()
                    }
                )
                progress(place * len(self.factors) + number + 1, total)
        plot = Plot(
            "budget_factor",
            "gain_over_cost",
            "auction",
            "budget / value of everything for sale",
            "mean gain / cost",
        )
        return Finding(rows, plot, self._sentences(rows))

    def _sentences(self, rows: list[dict[str, Any]]) -> list[str]:
        said = []
        for name in self.auctions:
            mine = [row for row in rows if row["auction"] == name]
            mean = float(np.mean([row["gain_over_cost"] for row in mine]))
            share = float(np.mean([row["share_gaining"] for row in mine]))
            said.append(
                f"{name}: the best lies found earn {mean:.2f} of cost on average; {share:.0%} of owners gain more than 1 %"
            )
        return said
