"""What a report earns: the utility of one liar in each market, on the mechanism as deployed.

Three kinds of auctions, told apart by what they do:

    deterministic   `decide` draws nothing: one call
    expected        `decide` draws, and the auction can say the chance and payment of every level: their mean
    sampled         `decide` draws: the mean over `draws` draws, the same numbers for every report

A randomised auction is never judged by the difference of two single draws, because that is mostly
noise (docs/theory.md, section 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import Auction, StatesChances, records_sold
from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Bools, Floats, Ints, Misreports

AT_ONCE = 8_192  # markets decided in one call: what lies between fits into a processor's cache
LEAST_SOLD = 8  # M in the paper's market
DRAWS = 64


def draws_numbers(auction: Auction, bids: BidBatch, budget: Floats) -> bool:
    """Whether `decide` uses its random numbers at all."""
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state["state"]
    auction.decide(bids.take(slice(0, 1)), budget[:1], rng)
    return bool(rng.bit_generator.state["state"] != before)


class Payoff:
    """The liars' utilities in K = G x samples markets, owner[g] lying in markets g * samples and following.

    `group` (K, n) names those whose utilities are summed (by default the liar's alone counts).
    """

    def __init__(
        self,
        auction: Any,
        truth: Profiles,
        reported: BidBatch,
        budget: Floats,
        owner: Ints,
        *,
        samples: int = 1,
        group: Bools | None = None,
        seed: int = 0,
        draws: int = DRAWS,
    ) -> None:
        if (
            len(owner) * samples != truth.shape[0]
            or reported.shape != truth.shape
            or budget.shape != truth.shape[:1]
        ):
            raise InputError(
                f"{len(owner)} liars with {samples} markets each need {len(owner) * samples} markets, got {truth.shape[0]} "
                f"(reports {reported.shape}, budgets {budget.shape})"
            )
        self.auction, self.truth, self.reported, self.budget = auction, truth, reported, budget
        self.owner, self.samples, self.group = owner, samples, group
        self.seed, self.draws = seed, draws
        self.random = draws_numbers(auction, reported, budget)
        self.sampled = self.random and not isinstance(auction, StatesChances)
        self._liar = np.repeat(owner, samples)
        self._step_cost = truth.rate * truth.data_size * truth.privacy_budget

    def __call__(self, lies: Misreports) -> Floats:
        """(C, G) mean utility of the liar, or of her group, under each candidate (C, G, ...)."""
        candidates = lies.privacy_budget.shape[0]
        markets = self.truth.shape[0]
        per_call = markets if self.sampled else max(1, AT_ONCE // max(candidates, 1))
        per_call = max(self.samples, per_call // self.samples * self.samples)
        found = np.empty((candidates, markets))
        for begin in range(0, markets, per_call):
            rows = np.arange(begin, min(begin + per_call, markets))
            at_once = 1 if self.sampled else max(1, AT_ONCE // len(rows))
            for first in range(0, candidates, at_once):
                part = slice(first, first + at_once)
                found[part, rows] = self._utilities(lies.at(part), rows)
        return np.asarray(found.reshape(candidates, len(self.owner), self.samples).mean(axis=2))

    def paired(
        self, one: Misreports, other: Misreports, seed: int, draws: int
    ) -> tuple[Floats, Floats, Floats]:
        """(G,) mean utilities of two reports on the same fresh draws, and the standard error of their difference."""
        fresh = Payoff(
            self.auction, self.truth, self.reported, self.budget, self.owner,
            samples=self.samples, group=self.group, seed=seed, draws=1,
        )  # fmt: skip
        pairs = np.empty((2, draws, len(self.owner)))
        for draw in range(draws):
            fresh.seed = seed + draw
            for place, report in enumerate((one, other)):
                pairs[place, draw] = fresh(report.at(None))[0]
        difference = pairs[0] - pairs[1]
        error = difference.std(axis=0, ddof=1) / np.sqrt(draws)
        return pairs[0].mean(axis=0), pairs[1].mean(axis=0), error

    def _utilities(self, lies: Misreports, rows: Ints) -> Floats:
        """(C, len(rows)) for candidates in some of the markets."""
        count = lies.privacy_budget.shape[0]
        liar, market = self._liar[rows], rows // self.samples
        place = np.arange(len(rows))

        def told(everybody: Floats, mine: Floats) -> Floats:
            many = np.repeat(everybody[None, rows], count, axis=0)
            many[:, place, liar] = mine[:, market]
            return many.reshape(-1, *many.shape[2:])

        bids = BidBatch(
            told(self.reported.values, lies.values),
            told(self.reported.privacy_budget, lies.privacy_budget),
            told(self.reported.data_size, lies.data_size),
        )
        budget = np.tile(self.budget[rows], count)
        if self.group is None:
            column = np.tile(liar, count)
            many = np.tile(rows, count)
            return self._mean(bids, budget, many, column).reshape(count, len(rows))
        total = np.zeros((count, len(rows)))
        many = np.tile(rows, count)
        for j in np.flatnonzero(self.group[rows].any(axis=0)):
            column = np.full(len(many), j)
            utility = self._mean(bids, budget, many, column).reshape(count, len(rows))
            total += np.where(self.group[rows, j], utility, 0.0)
        return total

    def _mean(self, bids: BidBatch, budget: Floats, rows: Ints, column: Ints) -> Floats:
        """Mean utility of owner column[b] of market rows[b] under bids b."""
        every = np.arange(len(rows))
        if not self.random:
            return self._realised(
                rows, column, bids, self.auction.decide(bids, budget, np.random.default_rng(0))
            )
        if not self.sampled:
            chance, payment = (part[every, column] for part in self.auction.expected(bids, budget))
            levels = chance.shape[1] - 1
            total = np.zeros(len(rows))
            for m in range(levels + 1):
                loss = bids.privacy_budget[every, column] * (m / levels)
                size = bids.data_size[every, column]
                utility = self._utility(rows, column, size, loss, payment[:, m])
                total += np.where(chance[:, m] > 0, chance[:, m] * utility, 0.0)
            return total
        total = np.zeros(len(rows))
        for draw in range(self.draws):
            outcome = self.auction.decide(bids, budget, np.random.default_rng([self.seed, draw]))
            total += self._realised(rows, column, bids, outcome)
        return total / self.draws

    def _realised(self, rows: Ints, column: Ints, bids: BidBatch, outcome: Any) -> Floats:
        """Of one outcome: on the records that it buys, all that were offered unless it says otherwise."""
        mine = np.arange(len(rows)), column
        size = records_sold(outcome, bids)[mine]
        return self._utility(rows, column, size, outcome.privacy_loss[mine], outcome.payment[mine])

    def _utility(
        self, rows: Ints, column: Ints, size: Floats, loss: Floats, payment: Floats
    ) -> Floats:
        truth = self.truth
        value = valuation.value(
            truth.family[rows, column],
            truth.rate[rows, column],
            size,
            loss,
            self._step_cost[rows, column],
        )
        too_much = loss > truth.privacy_budget[rows, column] * (1 + 1e-12)
        return np.where(too_much, -np.inf, payment - value)


def expected_utility(
    auction: Any, truth: Profiles, bids: BidBatch, budget: Floats, seed: int = 0
) -> tuple[Floats, Floats]:
    """(K, n) mean utility of everybody under these reports, and the mean true value of what she sells: the paper's c."""
    random = draws_numbers(auction, bids, budget)
    if random and isinstance(auction, StatesChances):
        chance, payment = auction.expected(bids, budget)
        levels = chance.shape[2] - 1
        lots = [
            (chance[..., m], bids.privacy_budget * (m / levels), payment[..., m], bids.data_size)
            for m in range(levels + 1)
        ]
    else:
        count = DRAWS if random else 1
        outcomes = [
            auction.decide(bids, budget, np.random.default_rng([seed, draw]))
            for draw in range(count)
        ]
        each = np.full(truth.shape, 1 / count)
        lots = [(each, one.privacy_loss, one.payment, records_sold(one, bids)) for one in outcomes]
    utility, cost = np.zeros(truth.shape), np.zeros(truth.shape)
    for share, loss, money, size in lots:
        value = truth.value(loss, size)
        utility += np.where(share > 0, share * (money - value), 0.0)
        cost += share * value
    return utility, cost


def measured_against(truth: Profiles, cost: Floats) -> Floats:
    """(K, n) what gains and losses are divided by: the true value of what an owner sells, and at least that of 1/8 of her privacy budget.

    Without the second, whoever sells next to nothing would decide every mean. It is the same for all mechanisms, whatever levels they have.
    """
    return np.maximum(cost, truth.value(truth.privacy_budget / LEAST_SOLD))
