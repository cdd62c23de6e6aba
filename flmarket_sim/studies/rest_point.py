"""Where a market of misreporting owners comes to rest, and what that costs the buyer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.market_effects import effects_of
from flmarket_sim.strategy.rest_points import CYCLE, REST, UNSETTLED, best_response_dynamics
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    markets,
    melted,
    spread,
)


@dataclass(frozen=True)
class RestPoint:
    """Iterated best response until no owner gains more than `threshold`.

    The study compares the error at rest with the error under truthful reports.
    """

    name = "rest-point"
    auctions: Auctions
    profiles: Count = 100
    effort: SearchEffort = "quick"
    threshold: Annotated[float, Field(gt=0)] = 0.01
    max_sweeps: Count = 30

    def tasks(self, scenario: Scenario) -> list[Work]:
        settings = {
            "profiles": self.profiles,
            "effort": self.effort,
            "threshold": self.threshold,
            "max_sweeps": self.max_sweeps,
        }
        return [{"auction": name} | settings for name in self.auctions]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        auction = named(work["auction"])
        truth, budget = markets(scenario, work["profiles"])
        population = truth.population
        rule, clip = scenario.aggregation.name, scenario.privacy.clip
        rest = best_response_dynamics(
            auction,
            truth,
            budget,
            effort=work["effort"],
            seed=scenario.seed,
            threshold=work["threshold"],
            max_sweeps=work["max_sweeps"],
            levels=scenario.market.levels,
        )
        before = effects_of(auction, truth, truth.bids(scenario.market.levels), budget, rule, clip)
        after = effects_of(auction, truth, rest.reports, budget, rule, clip)
        valid = np.isfinite(before.error_bound) & np.isfinite(after.bound_of_data)
        bound_of_data = np.where(valid, after.bound_of_data, np.nan)
        row: Row = {
            "auction": work["auction"],
            "markets": work["profiles"],
            "rest": int((rest.ending == REST).sum()),
            "cycle": int((rest.ending == CYCLE).sum()),
            "unsettled": int((rest.ending == UNSETTLED).sum()),
            "settled": int((valid & (rest.ending != UNSETTLED)).sum()),
            "sweeps": float(rest.sweeps.mean()),
            "liars": float(rest.moved.mean()),
            "invalid_at_rest": float((~np.isfinite(after.error_bound)).mean()),
        }
        row |= spread(
            "error_truth", estimate(np.where(valid, before.error_bound, np.nan), population)
        )
        row |= spread(
            "error_rest", estimate(np.where(valid, after.error_bound, np.nan), population)
        )
        row |= spread("bound_of_data_rest", estimate(bound_of_data, population))
        row |= spread("error_ratio", estimate(bound_of_data, population, before.error_bound))
        row |= spread("surplus_truth", estimate(before.surplus / budget, population))
        row |= spread("surplus_rest", estimate(after.surplus / budget, population))
        row |= spread("spent_rest", estimate(after.spent / budget, population))
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        kinds = {"truthful": "error_truth", "liars at rest": "bound_of_data_rest"}
        plot = Plot("auction", "error", "owners", "", "mean error bound", bars=True)
        sentences = [_sentence(row, self.max_sweeps) for row in rows]
        return Finding(rows, plot, sentences, melted(rows, "error", "owners", kinds))


def _sentence(row: Row, max_sweeps: int) -> str:
    return (
        f"{row['auction']}: {row['rest']} of {row['markets']} markets rest, {row['cycle']} cycle, "
        f"{row['unsettled']} are unsettled after {max_sweeps} sweeps; the error is "
        f"{row['error_ratio']:.2f} times that under truth ({row['settled']} settled)"
    )
