"""Why published regrets are low: the published attack and the probe, on the same weights and the same markets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction import Differentiable
from flmarket_sim.errors import InputError
from flmarket_sim.paper.published_attack import Attack
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Progress, markets, spread


class PublishedRegret:
    """Regret (mean gain / cost) of learned auctions, measured in three ways.

    published attack: plain gradient steps from the truth, `steps` of them at `rate`, the last iterate, through a hard argmax that
    carries no gradient, so that only the payments are attacked (docs/theory.md, section 3).
    two draws of the truth: for randomised auctions, the positive part of the difference of two sampled utilities with no misreport
    at all, which is what a sampled metric calls regret when nobody lies.
    probe: the best lies found, by expected utility.
    """

    name = "published-regret"

    def __init__(
        self,
        auctions: Names,
        profiles: Count = 100,
        steps: Count = 100,
        rate: Annotated[float, Field(gt=0)] = 0.1,
        effort: str = "standard",
    ) -> None:
        effort_of(effort)
        self.auctions: dict[str, Any] = {name: named(name) for name in auctions}
        wrong = [
            name
            for name, auction in self.auctions.items()
            if not isinstance(auction, Differentiable)
        ]
        if wrong:
            raise InputError(
                f"{wrong[0]!r} has no network that an attack could follow: choose regretnet, m-regretnet or dm-regretnet"
            )
        self.profiles, self.steps, self.rate, self.effort = profiles, steps, rate, effort

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        truth, budget = markets(scenario, self.profiles)
        rows: list[dict[str, Any]] = []
        said = []
        for place, (name, auction) in enumerate(self.auctions.items()):
            attack = Attack(auction, truth, budget, self.steps, self.rate)
            mine = {"published attack": attack.expected()}
            progress(2 * place + 1, 2 * len(self.auctions))
            if not auction.learned.deterministic:
                mine["two draws of the truth"] = attack.luck()
            mine["probe"] = probe(
                auction, truth, budget, seed=scenario.seed, effort=self.effort
            ).relative_gain
            progress(2 * place + 2, 2 * len(self.auctions))
            for how, gain in mine.items():
                found = estimate(gain.mean(axis=1))
                rows.append(
                    {"auction": name, "measured_by": how, "markets": self.profiles}
                    | spread("gain_over_cost", found)
                )
            told = ", ".join(f"{how} {gain.mean():.3f}" for how, gain in mine.items())
            said.append(f"{name}: {told}")
        plot = Plot("auction", "gain_over_cost", "measured_by", "", "mean gain / cost", bars=True)
        return Finding(rows, plot, said)
