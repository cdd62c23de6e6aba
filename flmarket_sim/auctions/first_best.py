"""First-best: the best purchase found for a buyer who knows and pays every true valuation.

It is a yardstick for mechanisms and not a mechanism (docs/theory.md, section 4). The problem is not
convex (concave valuations, owners left out). The code tries all sets of step owners that can be the
best (`step_sets`), up to 14 of them in a market, and searches the split of the remaining money
(`money_search`). The purchase is affordable, so the optimum is at most its error. The optimum is at
least `lower_bound`, which is proved (`proved_bound`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import Floats
from flmarket_sim.auctions.money_search import (
    Spending,
    first_look,
    keep,
    optimal_error,
    spread_money,
)
from flmarket_sim.auctions.proved_bound import proved_bound
from flmarket_sim.auctions.step_sets import MOST_ENUMERATED, all_sets, neighbours, some_sets
from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import Profiles

Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

SETS_AT_ONCE = 2**17
SEARCHED_SETS = 4  # sets of step owners that get the whole search, by their first looks
HOPEFUL = 1.1  # times the best error so far: a set with a worse first look gets no whole search
SET_ROUNDS = 10  # exchanges of step owners in markets with too many of them for all sets


@dataclass(frozen=True)
class FirstBest:
    """The best purchase found in K markets; the optimum lies between lower_bound and error_bound.

    privacy_loss  (K, n)
    spending      (K,) at true valuations
    error_bound   (K,) of the purchase under exact OptAggr
    lower_bound   (K,) a proved lower bound of the least error of any affordable purchase; crude
                  unless it was asked for
    """

    privacy_loss: Floats
    spending: Floats
    error_bound: Floats
    lower_bound: Floats

    @property
    def gap(self) -> Floats:
        """(K,) the share of its error by which the purchase can at most be improved."""
        known = np.isfinite(self.error_bound)
        error = np.where(known, self.error_bound, 1.0)
        return np.where(known, 1.0 - self.lower_bound / error, 0.0)


def first_best(
    truth: Profiles,
    budget: ArrayLike,
    clip: float = 1.0,
    bound: bool = False,
    error: MarketError | None = None,
) -> FirstBest:
    """The best purchase found in K markets with budgets (K,).

    `bound` asks for a close lower bound, which takes longer than the search. Without it the lower
    bound is that of a buyer who can pay each divisible owner with the same money. `error` is what
    the markets count; None is the paper's reading, with the threshold `clip`.
    """
    counted = coordinate_error(clip) if error is None else error
    money = np.asarray(budget, np.float64)
    if money.shape != (truth.shape[0],) or not (np.isfinite(money) & (money >= 0)).all():
        raise InputError(f"budget must be finite, at least 0 and of shape ({truth.shape[0]},)")
    full = truth.value(truth.privacy_budget)
    scarce = full.sum(axis=1) > money
    loss = np.where(scarce[:, None], 0.0, truth.privacy_budget)
    noise = NoiseCurve.of(counted, float(truth.privacy_budget.max()))
    _, least = optimal_error(loss, truth.data_size, noise)
    lower = least.copy()
    for rows in _alike(np.flatnonzero(scarce), truth.family == valuation.STEP):
        loss[rows], least[rows], lower[rows] = _buy(truth.take(rows), money[rows], noise)
    if noise.tabulated:
        weights = weights_in(OptAggr(), loss, truth.data_size, counted)
        least = error_bound_in(counted, weights, loss, truth.data_size).total
        lower = np.minimum(lower * (1.0 - noise.slack), least)
        lower[~scarce] = least[~scarce]
    if bound and len(rows := np.flatnonzero(np.isfinite(least) & (lower < least))):
        proved = proved_bound(truth.take(rows), money[rows], loss[rows], error=counted)
        lower[rows] = np.maximum(lower[rows], proved)
    return FirstBest(loss, truth.value(loss).sum(axis=1), least, lower)


def _alike(rows: Rows, step: Bools) -> list[Rows]:
    """The rows in groups of markets that have the same number of step owners."""
    number = step[rows].sum(axis=1)
    groups = []
    for count in np.unique(number):
        some = rows[number == count]
        at_once = max(1, SETS_AT_ONCE >> min(int(count), MOST_ENUMERATED))
        groups += [some[first : first + at_once] for first in range(0, len(some), at_once)]
    return groups


def _buy(truth: Profiles, cash: Floats, noise: NoiseCurve) -> tuple[Floats, Floats, Floats]:
    """Losses (K, n), errors (K,) and crude lower bounds (K,) where money is scarce."""
    price = truth.value(truth.privacy_budget)
    step = truth.family == valuation.STEP
    if step[0].sum() <= MOST_ENUMERATED:
        market, members = all_sets(step, price, cash)
        problem, optimistic = _spendings(truth, cash, market, members, noise)
        lower = _least(optimistic, market, len(cash))
        look = _look_at_sets(problem, optimistic, market, len(cash), noise)
    else:
        _, lower = optimal_error(_alone(truth, price, cash), truth.data_size, noise)
        market, problem, look = _exchange_sets(truth, price, step, cash, noise)
    loss, error = np.zeros(price.shape), np.full(len(cash), np.inf)
    for rows in _best_rows(look[1], market, SEARCHED_SETS):
        keep(loss, error, market[rows], look[0][rows], look[1][rows])
        hopeful = look[1][rows] < HOPEFUL * error[market[rows]]
        if len(rows := rows[hopeful & (problem.price[rows] > 0).any(axis=1)]):
            keep(loss, error, market[rows], *spread_money(problem.take(rows), noise))
    return loss, error, np.minimum(lower, error)


def _alone(truth: Profiles, price: Floats, cash: Floats) -> Floats:
    """(K, n) what each owner sells for all of the money."""
    everything = np.broadcast_to(cash[:, None], price.shape)
    return Spending(truth, cash, price, np.zeros(price.shape)).losses(everything)


def _spendings(
    truth: Profiles, cash: Floats, market: Rows, members: Bools, noise: NoiseCurve
) -> tuple[Spending, Floats]:
    """What remains to be decided after sets of step owners, and lower bounds (R,) of the errors.

    The bound belongs to a buyer who can spend what is left on each divisible owner at once.
    """
    owners = truth.take(market)
    asked = owners.value(owners.privacy_budget)
    step = owners.family == valuation.STEP
    left = np.maximum(cash[market] - np.where(members, asked, 0.0).sum(axis=1), 0.0)
    bought = np.where(members, owners.privacy_budget, 0.0)
    problem = Spending(owners, left, np.where(step, 0.0, asked), bought)
    most = problem.losses(np.broadcast_to(left[:, None], asked.shape))
    return problem, optimal_error(most, owners.data_size, noise)[1]


def _look_at_sets(
    problem: Spending, optimistic: Floats, market: Rows, count: int, noise: NoiseCurve
) -> tuple[Floats, Floats]:
    """First purchases (R, n) with each set and errors (R,), infinite for sets that cannot be best.

    The sets of a market have their turn in the order of their lower bounds. Those whose bound is
    not below the best error so far are discarded.
    """
    loss, error = problem.bought.copy(), np.full(len(market), np.inf)
    settled = ~(problem.price > 0).any(axis=1) | (problem.cash <= 0)
    error[settled] = optimistic[settled]
    best = _least(error, market, count)
    turn = _ranks(optimistic, market)
    first, last = 0, 1
    while len(rows := np.flatnonzero(~settled & (turn >= first) & (optimistic < best[market]))):
        rows = rows[turn[rows] < last]
        if len(rows):
            loss[rows], error[rows] = first_look(problem.take(rows), noise)
            best = np.minimum(best, _least(error, market, count))
        first, last = last, 2 * last
    return loss, error


def _exchange_sets(
    truth: Profiles, price: Floats, step: Bools, cash: Floats, noise: NoiseCurve
) -> tuple[Rows, Spending, tuple[Floats, Floats]]:
    """The best set of every market with too many step owners for all sets: market (K,), what
    remains to be decided, and a first purchase with its error."""
    worths = [truth.data_size * truth.privacy_budget]
    if noise.tabulated:
        worths.append(1.0 / noise.variance_at(truth.privacy_budget))
    market, members = some_sets(step, price, cash, worths)
    error = np.full(len(cash), np.inf)
    chosen = np.zeros(step.shape, bool)
    for _ in range(SET_ROUNDS):
        problem, optimistic = _spendings(truth, cash, market, members, noise)
        _, tried = _look_at_sets(problem, optimistic, market, len(cash), noise)
        rows = _best_rows(tried, market, 1)[0]
        rows = rows[tried[rows] < error[market[rows]]]
        if not len(rows):
            break
        chosen[market[rows]], error[market[rows]] = members[rows], tried[rows]
        market, members = neighbours(chosen, step, price, cash, worths)
    market = np.arange(len(cash))
    problem, optimistic = _spendings(truth, cash, market, chosen, noise)
    return market, problem, _look_at_sets(problem, optimistic, market, len(cash), noise)


def _least(values: Floats, market: Rows, count: int) -> Floats:
    """(count,) the least value of each market; infinite for a market without any."""
    least = np.full(count, np.inf)
    np.minimum.at(least, market, values)
    return least


def _ranks(values: Floats, market: Rows) -> Rows:
    """(R,) the place of each row in its market, in ascending order of the values."""
    order = np.lexsort((values, market))
    ranks = np.empty(len(order), np.intp)
    first = np.searchsorted(market[order], market[order])
    ranks[order] = np.arange(len(order)) - first
    return ranks


def _best_rows(error: Floats, market: Rows, most: int) -> list[Rows]:
    """Rows with a finite error: the best of each market, then the second best, up to `most`."""
    rank = np.where(np.isfinite(error), _ranks(error, market), most)
    return [np.flatnonzero(rank == place) for place in range(most)]
