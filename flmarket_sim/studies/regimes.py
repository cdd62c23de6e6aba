"""What aggregation rules and auctions do to the true error as the dimension grows.

kappa = V(1) / C^2 is one number for the regime: 8 in the paper's reading of the error, and in
proportion to the number of coordinates for whole gradients (docs/theory.md, section 7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, error_of_kappa
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction import auction_in, sales_and_rest
from flmarket_sim.auctions.play import Player
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Finding,
    Plot,
    Row,
    Work,
    heavy_tailed,
    markets,
    spread,
)

Floats = NDArray[np.float64]
Kappas = Annotated[Sequence[Annotated[float, Field(gt=0)]], Field(min_length=1)]
BLIND = "opt-aggr, told kappa = 8"  # the published rule, whatever the market's error is
RULES = ("opt-aggr", BLIND, "convl-aggr", "var-opt", "uniform")


@dataclass(frozen=True)
class Regimes:
    """The true error bound of auctions and rules by kappa, over that of buying everything.

    Every auction is told the market's error where it can be. `over_everything` divides the error
    under a rule by the least error with all privacy budgets sold.
    """

    name = "regimes"
    auctions: Auctions
    kappas: Kappas = (8.0, 80.0, 800.0, 4920.0, 100_000.0)
    profiles: Count = 400

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": auction, "kappa": kappa, "profiles": self.profiles}
            for kappa in self.kappas
            for auction in self.auctions
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        truth, budget = markets(scenario, work["profiles"])
        error = error_of_kappa(work["kappa"])
        bids = truth.bids(scenario.market.levels)
        auction = auction_in(named(work["auction"]), error)
        outcome = Player.of(auction, bids, budget, scenario.seed).decide(bids, budget)
        loss, size = sales_and_rest(outcome, truth.data_size)
        everything = _error("opt-aggr", truth.privacy_budget, truth.data_size, error)
        rows = []
        for rule in RULES:
            ratio = _error(rule, loss, size, error) / everything
            row: Row = {"auction": work["auction"], "rule": rule, "kappa": work["kappa"]}
            row |= spread("over_everything", estimate(ratio, truth.population))
            row |= heavy_tailed(
                "over_everything", np.where(np.isfinite(ratio), ratio, np.nan), truth.population
            )
            rows.append(row | {"invalid": float((~np.isfinite(ratio)).mean())})
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        drawn = [row for row in rows if row["rule"] in (RULES[0], BLIND)]
        label = "median error / error of everything"
        plot = Plot(
            "kappa", "over_everything_median", "auction", "kappa", label, panel="rule", log_x=True
        )
        sentences = [_sentence(rows, kappa) for kappa in (min(self.kappas), max(self.kappas))]
        shown = ("kappa", "auction", "rule", "over_everything_median", "over_everything", "invalid")
        return Finding(rows, plot, sentences, drawn, shown=shown)


def _error(rule: str, loss: Floats, size: Floats, error: MarketError) -> Floats:
    """(K,) the true bound under a rule."""
    believed = error_of_kappa(8.0) if rule == BLIND else error
    weigher = aggregation.create("opt-aggr" if rule == BLIND else rule)
    weights = weights_in(weigher, loss, size, believed)
    return error_bound_in(error, weights, loss, size).total


def _sentence(rows: list[Row], kappa: float) -> str:
    at = [row for row in rows if row["kappa"] == kappa]
    best = min(at, key=lambda row: float(row["over_everything_median"]))
    return (
        f"kappa = {kappa:g}: the least median error over that of everything, "
        f"{best['over_everything_median']:.2f} [{best['over_everything_median_low']:.2f}, "
        f"{best['over_everything_median_high']:.2f}], has {best['auction']} with {best['rule']}"
    )
