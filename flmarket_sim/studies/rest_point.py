"""Where a market of liars comes to rest, and what that costs the buyer."""

from __future__ import annotations

import time
from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.market_effects import effect
from flmarket_sim.strategy.rest_points import CYCLE, REST, UNSETTLED, best_response_dynamics
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import (
    Count,
    Finding,
    Names,
    Plot,
    Progress,
    markets,
    melted,
    spread,
)


class RestPoint:
    """Iterated best response until nobody gains more than `threshold`, with the error at rest against the error under truth."""

    name = "rest-point"

    def __init__(
        self,
        auctions: Names,
        profiles: Count = 100,
        effort: str = "quick",
        threshold: Annotated[float, Field(gt=0)] = 0.01,
        max_sweeps: Count = 30,
    ) -> None:
        effort_of(effort)
        self.auctions = {name: named(name) for name in auctions}
        self.profiles, self.effort, self.threshold, self.max_sweeps = (
            profiles,
            effort,
            threshold,
            max_sweeps,
        )

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        truth, budget = markets(scenario, self.profiles)
        rule, clip = scenario.aggregation.name, scenario.privacy.clip
        rows, said = [], []
        for place, (name, auction) in enumerate(self.auctions.items()):
            began = time.perf_counter()
            rest = best_response_dynamics(
                auction, truth, budget, effort=self.effort, seed=scenario.seed, threshold=self.threshold,
                max_sweeps=self.max_sweeps, levels=scenario.market.levels,
                progress=_part(progress, place, len(self.auctions)),
            )  # fmt: skip
            seconds = time.perf_counter() - began
            before = effect(auction, truth, truth.bids(scenario.market.levels), budget, rule, clip)
            after = effect(auction, truth, rest.reports, budget, rule, clip)
            valid = np.isfinite(before.error_bound) & np.isfinite(after.bound_of_data)
            settled = valid & (rest.ending != UNSETTLED)
            row = {
                "auction": name,
                "markets": self.profiles,
                "rest": int((rest.ending == REST).sum()),
                "cycle": int((rest.ending == CYCLE).sum()),
                "unsettled": int((rest.ending == UNSETTLED).sum()),
                "sweeps": float(rest.sweeps.mean()),
                "liars": float(rest.moved.mean()),
                "invalid_at_rest": float((~np.isfinite(after.error_bound)).mean()),
            }
            row |= spread("error_truth", estimate(np.where(valid, before.error_bound, np.nan)))
            row |= spread("error_rest", estimate(np.where(valid, after.error_bound, np.nan)))
            row |= spread(
                "bound_of_data_rest", estimate(np.where(valid, after.bound_of_data, np.nan))
            )
            row |= spread(
                "error_ratio",
                estimate(np.where(valid, after.bound_of_data, np.nan), weights=before.error_bound),
            )
            row |= spread("surplus_truth", estimate(before.surplus / budget))
            row |= spread("surplus_rest", estimate(after.surplus / budget))
            row |= spread("spent_rest", estimate(after.spent / budget))
            row["seconds_a_market"] = seconds / self.profiles
            rows.append(row)
            said.append(
                f"{name}: {row['rest']} of {self.profiles} markets rest, {row['cycle']} cycle, {row['unsettled']} are unsettled after "
                f"{self.max_sweeps} sweeps; the error is {row['error_ratio']:.2f} times that under truth ({int(settled.sum())} settled)"
            )
        kinds = {"truthful": "error_truth", "liars at rest": "bound_of_data_rest"}
        plot = Plot("auction", "error", "owners", "", "mean error bound", bars=True)
        return Finding(rows, plot, said, melted(rows, "error", "owners", kinds))


def _part(progress: Progress, place: int, parts: int) -> Progress:
    """Progress of one of several equal parts."""
    return lambda done, total: progress(place * total + done, parts * total)
