"""Playing an auction: one outcome, outcomes draw by draw, and everything that can happen.

Auctions are played in three ways:

    deterministic   `decide` draws nothing: there is one lot
    with chances    `decide` draws, and the auction states its chances: there is a lot for each
                    level
    sampled         `decide` draws: there is a lot for each of several draws, with the same random
                    numbers whatever the reports are

A randomised auction is never judged by the difference of two single draws, which is mostly noise
(docs/theory.md, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from flmarket_sim.auctions.auction import (
    Auction,
    DecidesDraws,
    Floats,
    Outcome,
    StatesChances,
    records_sold,
)
from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.owners.bids import BidBatch, Profiles

DRAWS = 64  # of a sampled auction; a power of two, so that their weights are exact
AT_ONCE = 50_000  # owners in one call that decides several draws
LEAST_SOLD = 8  # the levels M of the paper's market


class Lots(NamedTuple):
    """What can happen to owners: the chance of each lot, and privacy loss, payment and records."""

    chance: Floats
    privacy_loss: Floats
    payment: Floats
    data_size: Floats

    def means(self) -> tuple[Floats, Floats]:
        """Mean privacy loss and mean payment over the first axis, the lots."""
        return (self.chance * self.privacy_loss).sum(0), (self.chance * self.payment).sum(0)


def draws_numbers(auction: Auction, bids: BidBatch, budget: Floats) -> bool:
    """Whether `decide` uses its random numbers on these bids."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    auction.decide(bids, budget, rng)
    return bool(rng.bit_generator.state != before)


def speaks_for(auction: Auction, method: str) -> bool:
    """Whether a method beside `decide` is about this auction's own `decide`.

    A class that replaces `decide` alone inherits from its parent what is true of the parent.
    """
    for kind in type(auction).__mro__:
        if method in vars(kind):
            return True
        if "decide" in vars(kind):
            return False
    return True  # a method of the object itself


class Player:
    """Plays one auction. `random` says whether its `decide` draws numbers."""

    def __init__(
        self, auction: Auction, random: bool, seed: int = 0, draws: int = DRAWS, name: str = ""
    ) -> None:
        self.auction, self.random, self.seed, self.draws = auction, random, seed, draws
        self.name = name or auction.name
        self.stated = (
            auction
            if isinstance(auction, StatesChances) and speaks_for(auction, "expected")
            else None
        )
        self.many = (
            auction
            if isinstance(auction, DecidesDraws) and speaks_for(auction, "decide_draws")
            else None
        )

    @classmethod
    def of(
        cls, auction: Auction, bids: BidBatch, budget: Floats, seed: int = 0, draws: int = DRAWS
    ) -> Player:
        """A player who learns from the first of these markets whether the auction draws numbers."""
        return cls(auction, draws_numbers(auction, bids.take([0]), budget[:1]), seed, draws)

    @property
    def states_chances(self) -> bool:
        return self.stated is not None

    @property
    def sampled(self) -> bool:
        """Whether only draws can tell what happens: the auction draws and cannot state chances."""
        return self.random and not self.states_chances

    def decide(self, bids: BidBatch, budget: Floats, draw: int = 0) -> Outcome:
        """The outcome of one draw in K markets."""
        with plugin_errors("auction", self.name):
            return self.auction.decide(bids, budget, np.random.default_rng([self.seed, draw]))

    def outcomes(self, bids: BidBatch, budget: Floats) -> Iterator[Outcome]:
        """The outcomes of all draws in K markets; one outcome where nothing is drawn."""
        if self.random and self.many is not None:
            return self._in_one_pass(self.many, bids, budget)
        return (self.decide(bids, budget, draw) for draw in range(self.draws if self.random else 1))

    def _in_one_pass(
        self, auction: DecidesDraws, bids: BidBatch, budget: Floats
    ) -> Iterator[Outcome]:
        """The same outcomes from an auction that decides several draws together."""
        at_once = max(1, AT_ONCE // bids.privacy_budget.size)
        for first in range(0, self.draws, at_once):
            draws = range(first, min(first + at_once, self.draws))
            rngs = [np.random.default_rng([self.seed, draw]) for draw in draws]
            with plugin_errors("auction", self.name):
                outcomes = auction.decide_draws(bids, budget, rngs)
            if len(outcomes) != len(rngs):
                raise ContractError(
                    f"auction {self.name!r}: decide_draws returned {len(outcomes)} outcomes for "
                    f"{len(rngs)} generators"
                )
            yield from outcomes

    def chances(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, M + 1) chance and payment of every level, as the auction states them."""
        assert self.stated is not None
        with plugin_errors("auction", self.name):
            chance, payment = self.stated.expected(bids, budget)
            return np.asarray(chance, float), np.asarray(payment, float)

    def lots(self, bids: BidBatch, budget: Floats) -> Iterator[Lots]:
        """Each lot of K markets, its columns (K, n)."""
        if self.random and self.states_chances:
            chance, payment = self.chances(bids, budget)
            levels = chance.shape[2] - 1
            for m in range(levels + 1):
                loss = bids.privacy_budget * (m / levels)
                yield Lots(chance[..., m], loss, payment[..., m], bids.data_size)
            return
        each = np.full(bids.shape, 1 / self.draws if self.random else 1.0)
        for outcome in self.outcomes(bids, budget):
            yield Lots(each, outcome.privacy_loss, outcome.payment, records_sold(outcome, bids))

    def repeated(self, bids: BidBatch, money: float, draws: int) -> Lots:
        """Draws of one market, its columns (D, n): the rows of one call are the draws."""
        count = draws if self.random else 1
        many = bids.take(np.zeros(count, np.int64))
        outcome = self.decide(many, np.full(count, money))
        each = np.full(many.shape, 1 / count)
        return Lots(each, outcome.privacy_loss, outcome.payment, records_sold(outcome, many))

    def lots_of_market(self, bids: BidBatch, money: float, draws: int) -> Lots:
        """Everything that can happen in one market, its columns (D, n)."""
        if self.sampled:
            return self.repeated(bids, money, draws)
        lots = self.lots(bids, np.array([money]))
        return Lots(*(np.concatenate(column) for column in zip(*lots, strict=True)))

    def means(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n) mean privacy losses and payments."""
        loss, payment = np.zeros(bids.shape), np.zeros(bids.shape)
        for lot in self.lots(bids, budget):
            loss += lot.chance * lot.privacy_loss
            payment += lot.chance * lot.payment
        return loss, payment


def expected_utility(
    auction: Auction, truth: Profiles, bids: BidBatch, budget: Floats, seed: int = 0
) -> tuple[Floats, Floats]:
    """(K, n) mean utility of everybody under these reports, and the mean true value of what she
    sells: the paper's cost c."""
    utility, cost = np.zeros(truth.shape), np.zeros(truth.shape)
    for lot in Player.of(auction, bids, budget, seed).lots(bids, budget):
        value = truth.value(lot.privacy_loss, lot.data_size)
        utility += np.where(lot.chance > 0, lot.chance * (lot.payment - value), 0.0)
        cost += lot.chance * value
    return utility, cost


def measured_against(truth: Profiles, cost: Floats) -> Floats:
    """(K, n) what gains and losses are divided by: the true value of what an owner sells, and at
    least that of 1/8 of her privacy budget.

    Without this floor, owners who sell next to nothing would dominate every mean. The floor is the
    same for all mechanisms, whatever levels they have.
    """
    return np.maximum(cost, truth.value(truth.privacy_budget / LEAST_SOLD))
