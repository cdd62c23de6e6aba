"""The best purchase found when money has a price: the least of ERR(e) + mu sum_i c_i(e_i).

Symbols as in docs/theory.md, section 4: e_i privacy loss, x_i = 1 / V(e_i) inverse variance, l_i
weight, W_i data share, c_i cost, mu the price of money, u <= v the two numbers of exact OptAggr
(section 1). The problem is not convex: the error has rising returns near e = 0, and costs may be
concave. Each owner's losses are a grid, which is refined around the best loss at the end.

One step computes the exact weights of the losses at hand, and with them u and v. Then every owner
gets the loss that is best for these two numbers, which is a look-up in her grid:

    min over e of [ h_i(x(e)) + mu c_i(e) ],   h_i(x) = min over l of [ l^2 / x - 2 v l
                                                               + 2 (v - u) max(0, l - W_i) ]

The search begins at many sets of owners. Then every owner in turn gets the best loss of her grid
with exact weights, single owners are changed, and the grids are refined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import part_of_error, solve_with_duals
from flmarket_sim.aggregation.rule import data_shares
from flmarket_sim.owners.bids import Profiles

Floats = NDArray[np.float64]

CELLS = 40  # positive losses of the first grid of an owner
LEAST = 0.03  # the least positive loss of the first grid, as a share of the privacy budget
ZOOM = 5  # losses of a refined grid
STEPS, FEW_STEPS = 12, 4  # of a search from one start; of a look at a changed purchase
MOST_STARTS, FEW_STARTS = 12, 4  # numbers of owners to begin with
ROUNDS = 3  # of changes of one owner at a time
ZOOMS = 3
COARSE = 5  # of a quick search: every fifth loss is tried with exact weights
IMPROVES = 1e-6  # relative


@dataclass(frozen=True)
class PricedMarkets:
    """R markets in which every cost is counted in units of the error, C = 1.

    share           (R, n) data shares W
    loss            (R, n, G) losses on the grid, 0 first
    inverse         (R, n, G) x = C^2 / V there
    cost            (R, n, G) mu c there
    """

    share: Floats
    loss: Floats
    inverse: Floats
    cost: Floats

    def take(self, rows: Any) -> PricedMarkets:
        return PricedMarkets(self.share[rows], self.loss[rows], self.inverse[rows], self.cost[rows])

    def at(self, place: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """(R, n) inverse variances and costs at places of the grids."""
        return _at(self.inverse, place), _at(self.cost, place)


def priced_markets(
    truth: Profiles, price: Floats, noise: NoiseCurve, loss: Floats | None = None
) -> PricedMarkets:
    """The markets at prices of money (R,), with losses (R, n, G) or the first grid."""
    if loss is None:
        ends = LEAST ** (1.0 - np.arange(CELLS) / (CELLS - 1))
        loss = truth.privacy_budget[..., None] * np.concatenate([[0.0], ends])
    variance = np.where(loss > 0, noise.variance_at(np.where(loss > 0, loss, 1.0)), np.inf)
    cost = truth.types.at((slice(None), slice(None), None)).value(loss)
    inverse = noise.radius**2 / variance
    return PricedMarkets(data_shares(truth.data_size), loss, inverse, cost * price[:, None, None])


def penalised_purchase(
    truth: Profiles, price: Floats, noise: NoiseCurve, thorough: bool = True
) -> tuple[Floats, Floats]:
    """Losses (R, n) of the best purchase found, and ERR / C^2 + mu sum c of it (R,).

    Without `thorough` the search is a short one: enough to choose a price.
    """
    markets = priced_markets(truth, price, noise)
    every = range(0, CELLS + 1, 1 if thorough else COARSE)
    place, value = _one_after_the_other(
        markets, *_from_starts(markets, MOST_STARTS if thorough else FEW_STARTS), every
    )
    if not thorough:
        return _at(markets.loss, place), value
    place, value = _changed_one_by_one(markets, place, value)
    loss = _at(markets.loss, place)
    for _ in range(ZOOMS):
        markets = priced_markets(truth, price, noise, _zoomed(markets.loss, place, loss))
        middle = np.full(loss.shape, ZOOM // 2 + 1)
        middle[loss == 0] = 0
        place, value = _one_after_the_other(
            markets, *_settled(markets, middle, STEPS), range(ZOOM + 1)
        )
        loss = _at(markets.loss, place)
    return loss, value


def _at(table: Floats, place: NDArray[np.intp]) -> Floats:
    return np.asarray(np.take_along_axis(table, place[..., None], axis=2)[..., 0])


def _value(markets: PricedMarkets, place: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """(R,) error and cost of purchases, infinite if nothing is bought, and u and v of their exact
    weights."""
    inverse, cost = markets.at(place)
    none = ~(inverse > 0).any(axis=1)
    inverse[none] = 1.0
    weights, u, v = solve_with_duals(inverse, markets.share)
    noise = np.divide(weights**2, inverse, out=np.zeros_like(weights), where=inverse > 0)
    bias = np.abs(weights - markets.share).sum(axis=1) ** 2
    value = noise.sum(axis=1) + bias + cost.sum(axis=1)
    return np.where(none, np.inf, value), u, v


def best_places(markets: PricedMarkets, u: Floats, v: Floats) -> tuple[NDArray[np.intp], Floats]:
    """(R, n) the best loss of every owner for u and v (R,), and its h + mu c."""
    u, v = u[:, None, None], v[:, None, None]
    terms = part_of_error(markets.inverse, u, v, markets.share[..., None]) + markets.cost
    place = terms.argmin(axis=2)
    return place, _at(terms, place)


def _settled(
    markets: PricedMarkets, place: NDArray[np.intp], steps: int
) -> tuple[NDArray[np.intp], Floats]:
    """The best purchases on the way of some steps from purchases (R, n), and their values."""
    value, u, v = _value(markets, place)
    best, best_value = place, value
    for _ in range(steps):
        place, _ = best_places(markets, u, v)
        value, u, v = _value(markets, place)
        better = value < best_value
        if not better.any():
            break
        best = np.where(better[:, None], place, best)
        best_value = np.where(better, value, best_value)
    return best, best_value


def _from_starts(markets: PricedMarkets, most: int) -> tuple[NDArray[np.intp], Floats]:
    """The best of searches from whole budgets of the k owners who give most for their cost, for up
    to `most` numbers k."""
    n, last = markets.share.shape[1], markets.loss.shape[2] - 1
    precision, cost = markets.inverse[:, :, -1], markets.cost[:, :, -1]
    best, best_value = _settled(markets, np.full(markets.share.shape, last), STEPS)
    for score in (cost / precision, cost / np.sqrt(precision) / markets.share):
        rank = score.argsort(axis=1).argsort(axis=1)
        for count in np.unique(np.linspace(1, n - 1, min(n - 1, most)).astype(int)):
            place, value = _settled(markets, np.where(rank < count, last, 0), STEPS)
            better = value < best_value
            best = np.where(better[:, None], place, best)
            best_value = np.where(better, value, best_value)
    return best, best_value


def _changed_one_by_one(
    markets: PricedMarkets, place: NDArray[np.intp], value: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """Purchases after changes of one owner at a time: she sells nothing, a half or everything."""
    last = markets.loss.shape[2] - 1
    for _ in range(ROUNDS):
        before = value
        for i in range(place.shape[1]):
            for other in (0, last // 2, last):
                start = place.copy()
                start[:, i] = other
                tried, found = _settled(markets, start, FEW_STEPS)
                better = found < value * (1.0 - IMPROVES)
                place = np.where(better[:, None], tried, place)
                value = np.where(better, found, value)
        if not (value < before * (1.0 - IMPROVES)).any():
            break
    return place, value


def _one_after_the_other(
    markets: PricedMarkets, place: NDArray[np.intp], value: Floats, others: range
) -> tuple[NDArray[np.intp], Floats]:
    """Purchases in which every owner in turn gets the best of some losses, with exact weights."""
    for i in range(place.shape[1]):
        for other in others:
            tried = place.copy()
            tried[:, i] = other
            found = _value(markets, tried)[0]
            better = found < value
            place = np.where(better[:, None], tried, place)
            value = np.where(better, found, value)
    return place, value


def _zoomed(grid: Floats, place: NDArray[np.intp], loss: Floats) -> Floats:
    """(R, n, ZOOM + 1) finer grids around the losses at `place`, 0 first."""
    last = grid.shape[2] - 1
    below = _at(grid, np.maximum(place - 1, 0))
    above = _at(grid, np.minimum(place + 1, last))
    low = np.where(below > 0, below, 0.5 * loss)
    share = np.linspace(0.0, 1.0, ZOOM // 2 + 1)[:-1]
    left = low[..., None] + (loss - low)[..., None] * share
    right = loss[..., None] + (above - loss)[..., None] * (1.0 - share[::-1])
    zero = np.zeros((*loss.shape, 1))
    return np.concatenate([zero, left, loss[..., None], right], axis=2)
