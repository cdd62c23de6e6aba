"""How a buyer who pays true valuations splits money among owners who sell any part of what they
have.

Symbols: m_i money for owner i, e_i the privacy loss that it buys, v_i her valuation, l_i weight.

For fixed weights the variance is a sum of l_i^2 V(e_i), one term an owner. With the elasticities
h_i = m_i / (e_i v_i'(e_i)) of e_i in m_i and k_i = -e_i V'(e_i) / V(e_i) of the variance, the best
split has

    l_i^2 V(e_i) k_i h_i = mu m_i      for everybody who sells a part.

In the paper V ~ 1 / e^2 and k_i = 2. One step computes the optimal weights and then multiplies m_i
by the ratio of both sides to the power 1 / (1 + k_i h_i), which solves the equation if v_i and V
are powers of e_i; mu makes the sum the buyer's money. The power is taken 1.5 times as large, which
needs half of the steps. This finds a local optimum. The search starts in many places, and then
again from its best purchase with the money of one or two owners changed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.error_bound import error_bound
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import Profiles

Floats = NDArray[np.float64]

OVERRELAXATION = 1.5
SHORT, LONG, POLISH = 12, 15, 20  # steps of a first look, of the few best looks, of the result
PROMISING = 4  # first looks that are continued
RANDOM_STARTS = 40
ROUNDS = 5
MOST_MOVES = 300
IMPROVES = 1e-4  # relative; a smaller improvement does not start another round
HOPELESS = 1.2  # times the best error: a search that begins above it does not go on
NUMBERS_AT_ONCE = 15_000  # of one array of a descent: arrays then stay in the processor's cache
NEGLIGIBLE = 1e-9  # of the money: an owner who would get less gets nothing


@dataclass(frozen=True)
class Spending:
    """R problems: some money is left for the divisible owners of a market.

    owners   R markets of n owners
    cash     (R,) money that is left
    price    (R, n) what a divisible owner asks for her whole privacy budget; 0 for all others
    bought   (R, n) privacy losses that have been bought already; 0 for divisible owners
    """

    owners: Profiles
    cash: Floats
    price: Floats
    bought: Floats

    def take(self, rows: Any) -> Spending:
        """The problems `rows` (any index of the first axis)."""
        return Spending(
            self.owners.take(rows), self.cash[rows], self.price[rows], self.bought[rows]
        )

    def losses(self, money: Floats) -> Floats:
        """(R, n) all privacy losses, if the divisible owners get this money."""
        who = self.owners
        loss = valuation.loss_for_money(
            who.family, who.rate, who.data_size, who.privacy_budget, money
        )
        return np.where(self.price > 0, loss, self.bought)

    def money(self, loss: Floats) -> Floats:
        """(R, n) what the divisible owners ask for these privacy losses."""
        return np.where(self.price > 0, self.owners.value(loss), 0.0)

    def elasticity(self, money: Floats, loss: Floats) -> Floats:
        """(R, n) relative change of the loss for a relative change of the money."""
        who = self.owners
        slope = valuation.marginal_value(who.family, who.rate, who.data_size, loss)
        return np.asarray(money / np.maximum(loss * slope, 1e-300))


def optimal_error(loss: Floats, size: Floats, noise: NoiseCurve) -> tuple[Floats, Floats]:
    """Weights (R, n) of exact OptAggr and their error bounds (R,)."""
    variance = noise.variance(loss)
    weights = OptAggr().weights(loss, size, noise.radius, variance)
    return weights, error_bound(weights, loss, size, noise.radius, variance)


def share_out(wish: Floats, price: Floats, cash: Floats) -> Floats:
    """(R, n) the money, in proportion to `wish`, nobody more than her price.

    A pass gives what is above somebody's price to the others. The sum never exceeds the cash.
    """
    positive = wish > 0
    scale = cash / np.maximum(wish.sum(axis=1), 1e-300)
    for _ in range(4):
        full = positive & (scale[:, None] * np.where(positive, wish, 1.0) >= price)
        left = cash - np.where(full, price, 0.0).sum(axis=1)
        open_wish = np.where(full, 0.0, wish).sum(axis=1)
        scale = np.where(open_wish > 0, left / np.maximum(open_wish, 1e-300), np.inf)
    share = np.where(positive, scale[:, None] * np.where(positive, wish, 1.0), 0.0)
    return np.minimum(share, price)


def descend(
    problem: Spending, wish: Floats, steps: int, noise: NoiseCurve
) -> tuple[Floats, Floats]:
    """The best losses (R, n) of `steps` steps from the split in proportion to `wish`, and errors
    (R,)."""
    money = share_out(wish, problem.price, problem.cash)
    best, best_error = np.zeros_like(money), np.full(len(money), np.inf)
    for _ in range(steps):
        loss = problem.losses(money)
        weights, error = optimal_error(loss, problem.owners.data_size, noise)
        better = error < best_error
        best[better], best_error[better] = loss[better], error[better]
        sells = (money > NEGLIGIBLE * problem.cash[:, None]) & (loss > 0)
        safe = np.where(sells, loss, 1.0)
        elasticity = np.where(sells, problem.elasticity(money, safe), 0.0)
        gain = np.where(sells, noise.noise_slopes(weights, safe) * elasticity, 0.0)
        part = sells & (money < problem.price)
        rate = np.where(part, gain, 0.0).sum(axis=1) / np.maximum(
            np.where(part, money, 0.0).sum(axis=1), 1e-300
        )
        wanted = gain / np.where(sells & (rate > 0)[:, None], rate[:, None] * money, 1.0)
        power = OVERRELAXATION / (1.0 + noise.elasticity(safe) * elasticity)
        wish = np.where(sells, money * np.clip(wanted, 1e-6, 1e6) ** power, 0.0)
        money = share_out(wish, problem.price, problem.cash)
    return best, best_error


def spread_money(problem: Spending, noise: NoiseCurve) -> tuple[Floats, Floats]:
    """The best losses (R, n) that the whole search finds, and their errors (R,).

    A row's result does not depend on the other rows.
    """
    at_once = max(1, 2_000_000 // (MOST_MOVES * problem.price.shape[1]))
    parts = [
        _spread(problem.take(slice(first, first + at_once)), noise)
        for first in range(0, len(problem.cash), at_once)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def first_look(problem: Spending, noise: NoiseCurve) -> tuple[Floats, Floats]:
    """The best losses (R, n) of descents from the starts that are not random, and errors (R,)."""
    return _best(*_all(problem, starts(problem)[:-RANDOM_STARTS], LONG, noise))


def _spread(problem: Spending, noise: NoiseCurve) -> tuple[Floats, Floats]:
    """Two searches from different starts; the second one only goes on where it may find more."""
    splits = starts(problem)
    best, best_error = _improved(problem, *_look(problem, splits[::2], noise), noise)
    loss, error = _look(problem, splits[1::2], noise)
    ratio = error / best_error
    rows = np.flatnonzero((np.abs(ratio - 1.0) > IMPROVES) & (ratio < HOPELESS))
    if len(rows):
        second = _improved(problem.take(rows), loss[rows], error[rows], noise)
        keep(best, best_error, rows, *second)
    everything = np.arange(len(best))
    keep(best, best_error, everything, *descend(problem, problem.money(best), POLISH, noise))
    return best, best_error


def _improved(
    problem: Spending, best: Floats, best_error: Floats, noise: NoiseCurve
) -> tuple[Floats, Floats]:
    """Better losses (R, n) and errors (R,): rounds of moves, as long as they improve a row."""
    rows = np.arange(len(best))
    for _ in range(ROUNDS):
        part = problem.take(rows)
        loss, error = _look(part, _moves(part, best[rows]), noise)
        improves = error < best_error[rows] * (1.0 - IMPROVES)
        keep(best, best_error, rows, loss, error)
        rows = rows[improves]
        if not len(rows):
            break
    return best, best_error


def keep(
    best: Floats, best_error: Floats, rows: NDArray[np.intp], loss: Floats, error: Floats
) -> None:
    """Puts what is better into `best` and `best_error` at `rows`, which are distinct."""
    better = error < best_error[rows]
    best[rows[better]], best_error[rows[better]] = loss[better], error[better]


def starts(problem: Spending) -> list[Floats]:
    """First splits: by price, equal, by size and privacy budget; whole budgets in several orders as
    long as the money lasts; random ones, in which about half of the owners get next to nothing."""
    price, cash = problem.price, problem.cash
    size, budget = problem.owners.data_size, problem.owners.privacy_budget
    divisible = price > 0
    splits = [price, divisible * 1.0, divisible * size * budget]
    for score in (price / (size * budget), price, price / budget**2, -size):
        order = np.argsort(score, axis=1, kind="stable")
        before = np.zeros_like(price)
        ordered = np.take_along_axis(price, order, 1)
        np.put_along_axis(before, order, np.cumsum(ordered, axis=1) - ordered, 1)
        splits.append(np.clip(cash[:, None] - before, 0.0, price) + 1e-3 * price)
    rng = np.random.default_rng(0)
    for _ in range(RANDOM_STARTS):
        factor = np.exp(rng.normal(0.0, 1.5, price.shape[1]))
        splits.append(price * factor * np.where(rng.random(price.shape[1]) < 0.5, 1.0, 1e-6))
    return splits


def _moves(problem: Spending, loss: Floats) -> list[Floats]:
    """The split behind `loss` with other money for one owner, or for two: who sells gets nothing,
    and who sells nothing gets up to her price."""
    money = problem.money(loss)
    n = money.shape[1]
    most = np.minimum(problem.price, problem.cash[:, None])
    exchanged = np.where(money > 0, 0.0, most)
    moves: list[tuple[tuple[int, ...], Floats]]
    moves = [(pair, exchanged) for pair in itertools.combinations_with_replacement(range(n), 2)]
    moves += [((i,), share * most) for i in range(n) for share in (0.1, 0.35, 1.0)]
    if len(moves) > MOST_MOVES:
        some = np.random.default_rng(0).choice(len(moves), MOST_MOVES, replace=False)
        moves = [moves[number] for number in some]
    splits = []
    for owners, other in moves:
        split = money.copy()
        split[:, owners] = other[:, owners]
        splits.append(np.where(split.sum(axis=1, keepdims=True) > 0, split, problem.price))
    return splits


def _look(problem: Spending, splits: list[Floats], noise: NoiseCurve) -> tuple[Floats, Floats]:
    """Short descents from all splits, then longer ones from the most promising."""
    loss, error = _all(problem, splits, SHORT, noise)
    rows = np.arange(error.shape[1])
    promising = np.argsort(error, axis=0, kind="stable")[:PROMISING]
    again = [problem.money(loss[number, rows]) for number in promising]
    return _best(*_all(problem, again, LONG, noise))


def _best(loss: Floats, error: Floats) -> tuple[Floats, Floats]:
    rows = np.arange(error.shape[1])
    best = error.argmin(axis=0)
    return loss[best, rows], error[best, rows]


def _all(
    problem: Spending, splits: list[Floats], steps: int, noise: NoiseCurve
) -> tuple[Floats, Floats]:
    """Losses (S, R, n) and errors (S, R) of descents from S splits of every problem."""
    count, n = problem.price.shape
    wish = np.concatenate(splits)
    loss, error = np.empty_like(wish), np.empty(len(wish))
    at_once = max(1, NUMBERS_AT_ONCE // n)
    for first in range(0, len(wish), at_once):
        rows = np.arange(first, min(first + at_once, len(wish)))
        loss[rows], error[rows] = descend(problem.take(rows % count), wish[rows], steps, noise)
    return loss.reshape(len(splits), count, n), error.reshape(len(splits), count)
