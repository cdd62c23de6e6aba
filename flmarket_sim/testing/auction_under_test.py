"""The mechanism under test, and the three ways to play it: as it is, on average, and draw by draw."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import Outcome, StatesChances, records_sold
from flmarket_sim.errors import plugin_errors
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.testing.trial_markets import Floats

PREVIEW = 32  # draws of a lottery when many markets are looked through
DRAWS = 2048  # draws of a lottery when one market is judged
CERTAIN = 6.0  # standard errors: thousands of comparisons are made, and none may fail by chance


@dataclass(frozen=True)
class Lots:
    """What can happen in one market: D lots, each with its weight, privacy losses, payments and records sold, all (D, n).

    Deterministic auctions have one lot; auctions with `expected` have one a level, weights by owner; other
    lotteries have `DRAWS` draws, the same random numbers whatever the bids are.
    """

    weight: Floats
    loss: Floats
    payment: Floats
    size: Floats

    def means(self) -> tuple[Floats, Floats]:
        """(n,) mean loss and mean payment of every owner."""
        return (self.weight * self.loss).sum(axis=0), (self.weight * self.payment).sum(axis=0)


class AuctionUnderTest:
    """An auction with what the checks need to know of it. `random` and `sampled` are known after `notice`."""

    def __init__(self, auction: Any, seed: int = 0) -> None:
        self.auction, self.seed = auction, seed
        self.name = str(getattr(auction, "name", type(auction).__name__))
        self.random = False
        self._unused = _copied(auction)

    def fresh(self) -> AuctionUnderTest:
        """The same auction as it was before its first call."""
        other = AuctionUnderTest(_copied(self._unused), self.seed)
        other.random = self.random
        return other

    def notice(self, bids: BidBatch, money: Floats) -> None:
        """Notes whether `decide` draws numbers at all."""
        rng = np.random.default_rng(0)
        before = rng.bit_generator.state
        with plugin_errors("auction", self.name):
            self.auction.decide(bids, money, rng)
        self.random |= rng.bit_generator.state != before

    @property
    def has_expected(self) -> bool:
        return isinstance(self.auction, StatesChances)

    @property
    def sampled(self) -> bool:
        """A lottery that cannot say its chances: only draws can."""
        return self.random and not self.has_expected

    def decide(self, bids: BidBatch, money: Floats, draw: int = 0) -> Outcome:
        with plugin_errors("auction", self.name):
            outcome: Outcome = self.auction.decide(
                bids, money, np.random.default_rng([self.seed, draw])
            )
            return outcome

    def drawn(self, bids: BidBatch, money: Floats) -> list[Outcome]:
        """Outcomes of several draws of K markets; one where nothing is drawn."""
        return [self.decide(bids, money, draw) for draw in range(PREVIEW if self.random else 1)]

    def means(self, bids: BidBatch, money: Floats) -> tuple[Floats, Floats]:
        """(K, n) mean losses and payments; of sampled lotteries a preview over few draws."""
        if self.random and self.has_expected:
            chance, payment = self.expected(bids, money)
            share = np.arange(chance.shape[2]) / (chance.shape[2] - 1)
            return bids.privacy_budget * (chance @ share), (chance * payment).sum(axis=2)
        drawn = self.drawn(bids, money)
        return (
            np.mean([outcome.privacy_loss for outcome in drawn], axis=0),
            np.mean([outcome.payment for outcome in drawn], axis=0),
        )

    def expected(self, bids: BidBatch, money: Floats) -> tuple[Floats, Floats]:
        with plugin_errors("auction", self.name):
            chance, payment = self.auction.expected(bids, money)
            return np.asarray(chance, float), np.asarray(payment, float)

    def realised(self, bids: BidBatch, money: float) -> tuple[Floats, Floats, Floats]:
        """(D, n) losses, payments and records sold of one market, draw by draw. Draws are rows of one call."""
        count = DRAWS if self.random else 1
        rows = np.zeros(count, np.int64)
        many = bids.take(rows)
        outcome = self.decide(many, np.full(count, money))
        return outcome.privacy_loss, outcome.payment, records_sold(outcome, many)

    def lots(self, bids: BidBatch, money: float) -> Lots:
        """Everything that can happen in one market."""
        if self.random and self.has_expected:
            chance, payment = (part[0].T for part in self.expected(bids, np.array([money])))
            share = np.arange(len(chance)) / (len(chance) - 1)
            loss = share[:, None] * bids.privacy_budget
            return Lots(chance, loss, payment, np.broadcast_to(bids.data_size, loss.shape))
        loss, payment, size = self.realised(bids, money)
        return Lots(np.full(loss.shape, 1 / len(loss)), loss, payment, size)

    def above_noise(self, difference: Floats) -> bool:
        """Whether a paired difference (D,) of lots is positive beyond chance; always, where there is no chance."""
        if not self.sampled:
            return True
        error = difference.std(ddof=1) / np.sqrt(len(difference))
        return bool(difference.mean() > CERTAIN * error)


def _copied(auction: Any) -> Any:
    try:
        return copy.deepcopy(auction)
    except Exception:  # foreign objects need not be copyable
        return auction
