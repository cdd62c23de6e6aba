"""How far can a mechanism be lied to? A black-box search for the best lie of every owner, on the mechanism as deployed.

What it finds is a lower bound on regret. It knows the mechanism only through the auction contract, so it serves
classical auctions, our networks and the authors' alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import valuation
from flmarket_sim.auctions.contract import Auction
from flmarket_sim.bids import BidBatch, Profiles
from flmarket_sim.randomness import Purpose, Streams

Floats = NDArray[np.float64]
AT_ONCE = 40_000  # markets decided in one call


@dataclass(frozen=True)
class Gains:
    """All (K, n): utility of the truth, of the best report found, and the cost that gains are measured against.

    The cost is the true value of what an owner sells by the truth, and at least that of the lowest level.
    """

    truthful: Floats
    best: Floats
    cost: Floats

    @property
    def relative(self) -> Floats:
        return np.maximum(self.best - self.truthful, 0.0) / self.cost


@dataclass
class _Reports:
    """One candidate report of the owner under test in each market: values (K, M), privacy_budget (K,), data_size (K,)."""

    values: Floats
    budget: Floats
    size: Floats

    def better(self, other: _Reports, mask: NDArray[np.bool_]) -> None:
        self.values[mask], self.budget[mask], self.size[mask] = other.values[mask], other.budget[mask], other.size[mask]


def best_gains(
    auction: Auction,
    truth: Profiles,
    budget: Floats,
    seed: int = 0,
    random_tries: int = 48,
    refinements: int = 48,
    levels: int = 8,
) -> Gains:
    """The best unilateral misreport found for every owner: random structured lies first, then steps around the best.

    Lies are over family and rate, single levels, privacy budget (at most the true one) and data size (at most the true
    one, at least 1). Randomised auctions are judged by expected utility.
    """
    bids = truth.bids(levels)
    honest, cost = expected_utility(auction, truth, bids, budget)
    best = honest.copy()
    for i in range(truth.shape[1]):
        rng = Streams(seed).generator(Purpose.SEARCH, i)
        kept = _Reports(bids.values[:, i].copy(), bids.privacy_budget[:, i].copy(), bids.data_size[:, i].copy())
        for tries, make in ((random_tries, _random), (refinements, _near)):
            group = 8
            for _ in range(max(1, tries // group)):
                candidates = [make(truth, i, kept, levels, rng) for _ in range(group)]
                found = _utilities(auction, truth, bids, budget, i, candidates)
                for candidate, utility in zip(candidates, found, strict=True):
                    mask = utility > best[:, i]
                    kept.better(candidate, mask)
                    best[mask, i] = utility[mask]
    return Gains(honest, best, cost)


def expected_utility(auction: Auction, truth: Profiles, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
    """(K, n) utility of the truth, and the cost that gains and losses are measured against (see `Gains`)."""
    least = truth.value(truth.privacy_budget / bids.levels)
    return _utility(auction, truth, bids, budget), np.maximum(_losses(auction, bids, budget), least)


def _random(truth: Profiles, i: int, kept: _Reports, levels: int, rng: np.random.Generator) -> _Reports:
    markets = truth.shape[0]
    family = np.where(rng.random(markets) < 0.5, truth.family[:, i], rng.integers(0, 5, markets)).astype(np.int8)
    rate = truth.rate[:, i] * np.exp(0.8 * rng.standard_normal(markets))
    budget = truth.privacy_budget[:, i] * np.where(rng.random(markets) < 0.5, 1.0, rng.uniform(0.05, 1.0, markets))
    size = truth.data_size[:, i]
    size = np.where(rng.random(markets) < 0.7, size, np.maximum(1.0, np.floor(size * rng.uniform(0.05, 1.0, markets))))
    loss = budget[:, None] * (np.arange(1, levels + 1) / levels)
    values = valuation.value(family[:, None], rate[:, None], size[:, None], loss, (rate * size * budget)[:, None])
    return _Reports(values, budget, size)


def _near(truth: Profiles, i: int, kept: _Reports, levels: int, rng: np.random.Generator) -> _Reports:
    """The best so far with everything, or one part of it, moved a little."""
    markets = truth.shape[0]
    scale = rng.choice([0.05, 0.2, 0.6])
    part = rng.integers(4)
    values = kept.values * np.exp(scale * rng.standard_normal((markets, 1)))
    if part in (0, 3):
        values = np.maximum.accumulate(values * np.exp(scale * rng.standard_normal(values.shape)), axis=1)
    budget, size = kept.budget, kept.size
    if part in (1, 3):
        budget = np.minimum(budget * np.exp(scale * rng.standard_normal(markets)), truth.privacy_budget[:, i])
    if part in (2, 3):
        size = np.clip(np.floor(size * np.exp(scale * rng.standard_normal(markets))), 1.0, truth.data_size[:, i])
    return _Reports(values, budget.copy(), size.copy())


def _utilities(
    auction: Auction, truth: Profiles, bids: BidBatch, budget: Floats, i: int, candidates: list[_Reports]
) -> list[Floats]:
    """Utility (K,) of owner i under each candidate, many candidates in one call of the mechanism."""
    markets = truth.shape[0]
    per_call = max(1, AT_ONCE // markets)
    found: list[Floats] = []
    for begin in range(0, len(candidates), per_call):
        group = candidates[begin : begin + per_call]
        values, eb, size = (
            np.repeat(a[None], len(group), axis=0) for a in (bids.values, bids.privacy_budget, bids.data_size)
        )
        for g, candidate in enumerate(group):
            values[g, :, i], eb[g, :, i], size[g, :, i] = candidate.values, candidate.budget, candidate.size
        told = BidBatch(values.reshape(-1, *values.shape[2:]), eb.reshape(-1, eb.shape[2]), size.reshape(-1, size.shape[2]))
        many = truth.take(np.tile(np.arange(markets), len(group)))
        utility = _utility(auction, many, told, np.tile(budget, len(group)))[:, i]
        found += list(utility.reshape(len(group), markets))
    return found


def _utility(auction: Any, truth: Profiles, bids: BidBatch, budget: Floats) -> Floats:
    """Expected utility (K, n); randomised auctions that can say their expectation are asked for it."""
    if not hasattr(auction, "expected"):
        outcome = auction.decide(bids, budget, np.random.default_rng(0))
        return truth.utility(outcome.privacy_loss, outcome.payment, bids.data_size)
    chance, payment = auction.expected(bids, budget)
    levels = chance.shape[2] - 1
    total = np.zeros(truth.shape)
    for m in range(levels + 1):
        utility = truth.utility(bids.privacy_budget * (m / levels), payment[:, :, m], bids.data_size)
        total += np.where(chance[:, :, m] > 0, chance[:, :, m] * utility, 0.0)
    return total


def _losses(auction: Any, bids: BidBatch, budget: Floats) -> Floats:
    """Expected reported value (K, n) of what owners sell when they tell the truth."""
    if not hasattr(auction, "expected"):
        outcome = auction.decide(bids, budget, np.random.default_rng(0))
        return bids.value_at(outcome.privacy_loss)
    chance, _ = auction.expected(bids, budget)
    values = bids.at_levels(chance.shape[2] - 1)
    return np.asarray((chance[:, :, 1:] * values).sum(axis=2))
