"""Where a market of misreporting owners comes to rest, and what that costs the buyer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.perturbation.scenario_error import scenario_error
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
    auction_of,
    markets,
    melted,
    spread,
)


@dataclass(frozen=True)
class RestPoint:
    """Iterated best response until no owner gains more than `threshold`.

    The study compares the error where owners end with the error under truthful reports.

    rest, cycle, unsettled   markets in which nobody gains any more, in which reports come round
                             again, and in which neither has happened after `max_sweeps` sweeps
    error_ratio_at_rest      error of the true data over that under truth, in the markets at rest
    error_ratio, *_end       the same, and other measures, over all markets where they ended
    valid, valid_at_rest     markets with a valid gradient before and after, of all and at rest
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
        auction, error = auction_of(work["auction"], scenario), scenario_error(scenario)
        truth, budget = markets(scenario, work["profiles"])
        rule = scenario.aggregation.name
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
        before = effects_of(auction, truth, truth.bids(scenario.market.levels), budget, rule, error)
        after = effects_of(auction, truth, rest.reports, budget, rule, error)
        valid = np.isfinite(before.error_bound) & np.isfinite(after.bound_of_data)
        at_rest = rest.ending == REST
        bound_of_data = np.where(valid, after.bound_of_data, np.nan)
        row: Row = {
            "auction": work["auction"],
            "markets": work["profiles"],
            "rest": int(at_rest.sum()),
            "cycle": int((rest.ending == CYCLE).sum()),
            "unsettled": int((rest.ending == UNSETTLED).sum()),
            "valid": int(valid.sum()),
            "valid_at_rest": int((valid & at_rest).sum()),
            "sweeps": float(rest.sweeps.mean()),
            "liars": float(rest.moved.mean()),
            "invalid_at_end": float((~np.isfinite(after.error_bound)).mean()),
        }
        only_rest = np.where(at_rest, bound_of_data, np.nan)
        for key, values, weights in (
            ("error_truth", np.where(valid, before.error_bound, np.nan), None),
            ("error_end", np.where(valid, after.error_bound, np.nan), None),
            ("bound_of_data_end", bound_of_data, None),
            ("error_ratio", bound_of_data, before.error_bound),
            ("error_ratio_at_rest", only_rest, before.error_bound),
            ("surplus_truth", before.surplus / budget, None),
            ("surplus_end", after.surplus / budget, None),
            ("spent_end", after.spent / budget, None),
        ):
            row |= spread(key, estimate(values, truth.population, weights))
        return [row]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        kinds = {"truthful": "error_truth", "where liars end": "bound_of_data_end"}
        plot = Plot("auction", "error", "owners", "", "mean error bound", bars=True)
        sentences = [_sentence(row, self.max_sweeps) for row in rows]
        shown = (
            "auction",
            "rest",
            "cycle",
            "unsettled",
            "error_ratio_at_rest",
            "error_ratio",
            "liars",
        )
        return Finding(rows, plot, sentences, melted(rows, "error", "owners", kinds), shown=shown)


def _sentence(row: Row, max_sweeps: int) -> str:
    if row["valid_at_rest"]:
        at_rest = (
            f"the error there is {row['error_ratio_at_rest']:.2f} times that under truth "
            f"({row['valid_at_rest']} markets with a valid gradient)"
        )
    else:
        at_rest = "no error at rest can be given"
    everywhere = (
        f"{row['error_ratio']:.2f} times"
        if row["valid"]
        else "unknown, for want of valid gradients"
    )
    return (
        f"{row['auction']}: {row['rest']} of {row['markets']} markets come to rest; {at_rest}. "
        f"{row['cycle']} cycle, {row['unsettled']} are unsettled after {max_sweeps} sweeps; over "
        f"all {row['valid']} markets with valid gradients, settled or not, it is {everywhere}"
    )
