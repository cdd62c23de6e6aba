"""Why published regrets are low: the published attack and the probe, on the same weights and the same markets."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.bids import Profiles
from flmarket_sim.errors import InputError
from flmarket_sim.scenario import Scenario
from flmarket_sim.strategy.confidence import estimate
from flmarket_sim.strategy.effort import effort_of
from flmarket_sim.strategy.payoff import expected_utility
from flmarket_sim.strategy.probe import probe
from flmarket_sim.study.contract import Count, Finding, Names, Plot, Progress, markets, spread
from flmarket_sim.threads import one_torch_thread

Floats = NDArray[np.float64]


class PublishedRegret:
    """Regret (mean gain / cost) of learned auctions, measured in three ways.

    published attack: plain gradient steps from the truth, `steps` of them at `rate`, the last iterate, through a hard argmax that
    carries no gradient, so that only the payments are attacked (THEORY section 3).
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
        wrong = [name for name, auction in self.auctions.items() if not hasattr(auction, "relaxed")]
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
            mine = {"published attack": self._attacked(auction, truth, budget)}
            progress(2 * place + 1, 2 * len(self.auctions))
            if not auction.learned.deterministic:
                mine["two draws of the truth"] = self._luck(auction, truth, budget)
            mine["probe"] = probe(auction, truth, budget, seed=scenario.seed, effort=self.effort).relative_gain
            progress(2 * place + 2, 2 * len(self.auctions))
            for how, gain in mine.items():
                found = estimate(gain.mean(axis=1))
                rows.append(
                    {"auction": name, "measured_by": how, "markets": self.profiles} | spread("gain_over_cost", found)
                )
            told = ", ".join(f"{how} {gain.mean():.3f}" for how, gain in mine.items())
            said.append(f"{name}: {told}")
        plot = Plot("auction", "gain_over_cost", "measured_by", "", "mean gain / cost", bars=True)
        return Finding(rows, plot, said)

    def _attacked(self, auction: Any, truth: Profiles, budget: Floats) -> Floats:
        """(K, n) gain / cost of the published attack's reports, on the deployed auction in expectation."""
        import torch

        from flmarket_sim.mechanism_design.misreports import ascended_lies
        from flmarket_sim.mechanism_design.types import Types
        from flmarket_sim.strategy.lies import Lies
        from flmarket_sim.strategy.payoff import Payoff

        levels = int(auction.learned.network.levels)
        markets, n = truth.shape
        every, owner = (
            np.repeat(np.arange(markets), n),
            np.tile(np.arange(n), markets),
        )  # each owner of each market in her own copy
        many, money = truth.take(every), budget[every]
        columns = (many.family, many.rate, many.privacy_budget, many.data_size, money)
        types = Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
        learned, who = auction.learned, torch.from_numpy(owner)
        with one_torch_thread():
            lie = ascended_lies(
                learned.network, types, types.truthful(levels), who, self.steps, self.rate, learned.deterministic, None
            )
            bids = many.bids(levels)
            honest, cost = expected_utility(auction, many, bids, money)
            here = np.arange(len(owner)), owner
            told = Lies(
                np.maximum.accumulate(lie.values.double().numpy(), axis=1),
                np.minimum(lie.privacy_budget.double().numpy(), many.privacy_budget[here]),
                many.data_size[here],
            )
            lying = Payoff(auction, many, bids, money, owner)(told.at(None))[0]
        return np.asarray((np.maximum(lying - honest[here], 0.0) / cost[here]).reshape(markets, n))

    def _luck(self, auction: Any, truth: Profiles, budget: Floats) -> Floats:
        """(K, n) what two draws of the same truthful bids differ by, where the second is luckier, relative to cost."""
        bids = truth.bids(int(auction.learned.network.levels))
        _, cost = expected_utility(auction, truth, bids, budget)
        drawn = [auction.decide(bids, budget, np.random.default_rng(seed)) for seed in (1, 2)]
        first, second = (truth.utility(outcome.privacy_loss, outcome.payment) for outcome in drawn)
        return np.maximum(second - first, 0.0) / cost
