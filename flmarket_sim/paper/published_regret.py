"""Why published regrets are low: the authors' procedure, its mended forms and the probe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction import Differentiable
from flmarket_sim.errors import InputError
from flmarket_sim.paper.published_attack import Attack
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.studies.study import (
    Auctions,
    Count,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    heavy_tailed,
    markets,
    spread,
)

AS_PUBLISHED, MENDED, LUCK = "as published", "axis mended", "two draws of the truth"
CORRECTED, PROBE = "corrected metric", "probe"
METHODS = (AS_PUBLISHED, MENDED, LUCK, CORRECTED, PROBE)


@dataclass(frozen=True)
class PublishedRegret:
    """Regret (mean gain / cost) of learned auctions, in several ways on the same markets.

    as published            the procedure of the authors' code: plain gradient steps from the truth,
                            `steps` of them at `rate`, on valuations, privacy budget and records.
                            After each step valuations are made monotone along the owners' axis in
                            place of the levels' axis, which garbles most misreports; the last
                            iterate counts (docs/theory.md, section 3).
    axis mended             the same, with valuations that are monotone over the levels
    two draws of the truth  for randomised auctions: what that metric calls regret although every
                            owner is truthful
    corrected metric        expected utilities, a smooth choice of levels, the best of several
                            iterates
    probe                   the best misreports found, by expected utility, in the first `probed`
                            markets
    """

    name = "published-regret"
    auctions: Auctions
    profiles: Count = 1000
    probed: Count = 100
    steps: Count = 100
    rate: Annotated[float, Field(gt=0)] = 0.1
    effort: SearchEffort = "standard"

    def __post_init__(self) -> None:
        for name in self.auctions:
            if not isinstance(named(name), Differentiable):
                raise InputError(
                    f"{name!r} has no network that an attack could follow: choose regretnet, "
                    "m-regretnet or dm-regretnet"
                )

    def tasks(self, scenario: Scenario) -> list[Work]:
        keys = ("profiles", "probed", "steps", "rate", "effort")
        settings = {key: getattr(self, key) for key in keys}
        tasks = []
        for name in self.auctions:
            auction: Any = named(name)
            skipped = LUCK if auction.learned.deterministic else None
            tasks += [
                {"auction": name, "measured_by": method} | settings
                for method in METHODS
                if method != skipped
            ]
        return tasks

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        auction: Any = named(work["auction"])
        truth, budget = markets(scenario, work["profiles"])
        attack = Attack(auction, truth, budget, work["steps"], work["rate"])
        method = work["measured_by"]
        gain: np.ndarray[Any, Any]
        if method == PROBE:
            few = slice(0, work["probed"])
            gain = probe(
                auction, truth.take(few), budget[few], seed=scenario.seed, effort=work["effort"]
            ).relative_gain
        elif method == CORRECTED:
            gain = attack.corrected()
        elif method == LUCK:
            gain = attack.luck()
        else:
            gain = (attack.as_published if method == AS_PUBLISHED else attack.axis_mended)()
        population = truth.population[: len(gain)]
        row = {"auction": work["auction"], "measured_by": method, "markets": len(gain)}
        row |= spread("gain_over_cost", estimate(gain.mean(axis=1), population))
        return [row | heavy_tailed("gain_over_cost", gain, population)]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        sentences = []
        for name in self.auctions:
            measured = [row for row in rows if row["auction"] == name]
            values = [f"{row['measured_by']} {row['gain_over_cost']:.3f}" for row in measured]
            sentences.append(f"{name}: {', '.join(values)}")
        plot = Plot("auction", "gain_over_cost", "measured_by", "", "mean gain / cost", bars=True)
        shown = ("auction", "measured_by", "gain_over_cost", "gain_over_cost_median", "markets")
        return Finding(rows, plot, sentences, shown=shown)
