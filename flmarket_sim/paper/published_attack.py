"""The paper's regret metric, the same attack without its faults, and the regret of luck alone.

as published  plain gradient steps from the truth; the last iterate counts. A hard choice of levels
              carries no gradient, so only the payments are attacked. Lotteries are judged by one
              draw of each report (docs/theory.md, section 3).
corrected     the same steps along a smooth choice of levels; the best of several iterates counts,
              by expected utilities
luck          lotteries only: the difference of two draws of the truth, where the second draw is
              luckier. Nobody misreports.

The paper divides by the expected cost of what is sold, however small that is. So do
`as_published`, `luck` and `drawn_shortfall`; the others divide as the probe does
(`measured_against`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Misreports
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.threads import one_torch_thread

Floats = NDArray[np.float64]
TEMPERATURE = 0.05
BEST_OF = (0.03, 0.1, 0.3, 1.0)  # the corrected attack compares iterates after these shares


@dataclass(frozen=True)
class Attack:
    """Misreports of each owner in each market, each in a copy of the market.

    `rate` and `steps` are the paper's gamma and J. Results have the shape (K, n).
    """

    auction: Any
    truth: Profiles
    budget: Floats
    steps: int = 100
    rate: float = 0.1

    def as_published(self, seed: int = 0) -> Floats:
        """Gain / cost of the last iterate; one draw of each report where the auction draws."""
        misreports = self._ascended(self.steps, None)
        if self.auction.learned.deterministic:
            return np.maximum(self._gain(misreports), 0.0) / self._paper_cost()
        many, money, owner = self._copies()
        here = np.arange(len(owner)), owner
        bids = many.bids(self._levels)
        honest = self._drawn(many, bids, money, seed)[here]
        reports = misreports.within(bids, owner)
        lying = self._drawn(many, reports, money, seed + 1)[here]
        gain = (lying - honest).reshape(self.truth.shape)
        return np.asarray(np.maximum(gain, 0.0) / self._paper_cost())

    def expected(self) -> Floats:
        """Gain / cost of the published attack's reports, by expected utilities."""
        return self._relative(self._gain(self._ascended(self.steps, None)))

    def corrected(self) -> Floats:
        """Gain / cost of the best of several iterates, by expected utilities."""
        soft = TEMPERATURE if self.auction.learned.deterministic else None
        stops = dict.fromkeys(max(1, round(self.steps * share)) for share in BEST_OF)
        gains = [self._gain(self._ascended(steps, soft)) for steps in stops]
        return self._relative(np.max(gains, axis=0))

    def luck(self) -> Floats:
        """The gain of a luckier second draw of the same truthful bids, over cost."""
        bids = self.truth.bids(self._levels)
        first, second = (self._drawn(self.truth, bids, self.budget, seed) for seed in (1, 2))
        return np.maximum(second - first, 0.0) / self._paper_cost()

    def drawn_shortfall(self, seed: int = 0) -> Floats:
        """How far one draw pays less than the value of what was sold, over expected cost."""
        drawn = self._drawn(self.truth, self.truth.bids(self._levels), self.budget, seed)
        return np.maximum(-drawn, 0.0) / self._paper_cost()

    @property
    def _levels(self) -> int:
        return int(self.auction.learned.network.levels)

    def _copies(self) -> tuple[Profiles, Floats, NDArray[np.int64]]:
        markets, n = self.truth.shape
        every = np.repeat(np.arange(markets), n)
        return self.truth.take(every), self.budget[every], np.tile(np.arange(n), markets)

    def _ascended(self, steps: int, temperature: float | None) -> Misreports:
        import torch

        from flmarket_sim.training.training_misreports import ascended_misreports
        from flmarket_sim.training.type_space import Types

        many, money, owner = self._copies()
        columns = (many.family, many.rate, many.privacy_budget, many.data_size, money)
        types = Types(*(torch.from_numpy(np.asarray(column, np.float32)) for column in columns))
        learned = self.auction.learned
        with one_torch_thread():
            lie = ascended_misreports(
                learned.network, types, types.truthful(self._levels), torch.from_numpy(owner),
                steps, self.rate, learned.deterministic, temperature,
            )  # fmt: skip
        here = np.arange(len(owner)), owner
        return Misreports(
            np.maximum.accumulate(lie.values.double().numpy(), axis=1),
            np.minimum(lie.privacy_budget.double().numpy(), many.privacy_budget[here]),
            many.data_size[here],
        )

    def _gain(self, misreports: Misreports) -> Floats:
        """Mean utility of each misreporting owner less that of her truth."""
        many, money, owner = self._copies()
        bids = many.bids(self._levels)
        with one_torch_thread():
            honest, _ = expected_utility(self.auction, many, bids, money)
            lying = Payoff(self.auction, many, bids, money, owner)(misreports.at(None))[0]
        return np.asarray(lying - honest[np.arange(len(owner)), owner]).reshape(self.truth.shape)

    def _relative(self, gain: Floats) -> Floats:
        return np.asarray(np.maximum(gain, 0.0) / measured_against(self.truth, self._cost()))

    def _cost(self) -> Floats:
        return expected_utility(
            self.auction, self.truth, self.truth.bids(self._levels), self.budget
        )[1]

    def _paper_cost(self) -> Floats:
        """The expected cost of what is sold, by which the paper divides.

        Where nothing is sold (the paper's weights always sell), it is the probe's least divisor.
        """
        cost = self._cost()
        return np.where(cost > 0, cost, measured_against(self.truth, cost))

    def _drawn(self, truth: Profiles, bids: BidBatch, budget: Floats, seed: int) -> Floats:
        outcome = self.auction.decide(bids, budget, np.random.default_rng(seed))
        return truth.utility(outcome.privacy_loss, outcome.payment)
