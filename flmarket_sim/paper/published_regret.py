"""Why published regrets are low: the published attack and the probe on the same weights."""

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
    markets,
    spread,
)

ATTACK, LUCK, PROBE = "published attack", "two draws of the truth", "probe"


@dataclass(frozen=True)
class PublishedRegret:
    """Regret (mean gain / cost) of learned auctions, measured in three ways on the same markets.

    published attack        plain gradient steps from the truth, `steps` of them at `rate`. It takes
                            the last iterate, through a hard argmax that carries no gradient, so it
                            attacks the payments alone (docs/theory.md, section 3).
    two draws of the truth  for randomised auctions: the positive part of the difference of two
                            sampled utilities without any misreport. A sampled metric calls this
                            regret although every owner is truthful.
    probe                   the best misreports found, by expected utility.
    """

    name = "published-regret"
    auctions: Auctions
    profiles: Count = 100
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
        settings = {key: getattr(self, key) for key in ("profiles", "steps", "rate", "effort")}
        tasks = []
        for name in self.auctions:
            auction: Any = named(name)
            methods = (ATTACK, PROBE) if auction.learned.deterministic else (ATTACK, LUCK, PROBE)
            tasks += [{"auction": name, "measured_by": method} | settings for method in methods]
        return tasks

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        auction: Any = named(work["auction"])
        truth, budget = markets(scenario, work["profiles"])
        gain: np.ndarray[Any, Any]
        if work["measured_by"] == PROBE:
            search = probe(auction, truth, budget, seed=scenario.seed, effort=work["effort"])
            gain = search.relative_gain
        else:
            attack = Attack(auction, truth, budget, work["steps"], work["rate"])
            gain = attack.luck() if work["measured_by"] == LUCK else attack.expected()
        row = {key: work[key] for key in ("auction", "measured_by")} | {"markets": work["profiles"]}
        return [row | spread("gain_over_cost", estimate(gain.mean(axis=1)))]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        sentences = []
        for name in self.auctions:
            measured = [row for row in rows if row["auction"] == name]
            values = [f"{row['measured_by']} {row['gain_over_cost']:.3f}" for row in measured]
            sentences.append(f"{name}: {', '.join(values)}")
        plot = Plot("auction", "gain_over_cost", "measured_by", "", "mean gain / cost", bars=True)
        return Finding(rows, plot, sentences)
