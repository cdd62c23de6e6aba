"""A proved lower bound of the least error of any purchase that a budget can pay, by branch and
bound.

Units: the largest norm of a gradient is C = 1 (the error is C^2 times as large otherwise), and
budget 1. Symbols as in docs/theory.md, section 4: x_i = 1 / V(e_i) inverse variance (e_i^2 / 8 in
the paper), c_i cost, W_i data share. For any numbers u <= v and mu >= 0 every affordable purchase
has

    ERR >= 2 v - mu - (v - u)^2 / 4 + sum_i min over e of [ h_i(x_i) + mu c_i(e) ]
    h_i(x) = min over l of [ l^2 / x - 2 v l + 2 (v - u) max(0, l - W_i) ]

(weak duality; the proof is on that page). The privacy losses of an owner are covered by cells. In a
cell the code takes x at the upper end and c at the lower end, so the minimum over cells is not
above the minimum over losses, whatever the form of a non-decreasing valuation and of a falling V. A
cell of one owner that would raise the bound above the cutoff, slightly less than the error of a
known purchase, is removed. The cells that remain are refined, and a node is split in two at a loss
of one owner. The lowest bound of the nodes that are left, or the cutoff, is the result.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import OptAggr, part_of_error
from flmarket_sim.aggregation.rule import data_shares, weights_in
from flmarket_sim.owners.bids import Profiles

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

TOLERANCE = 0.005  # the cutoff is this share below the error of the purchase
MOST_NODES = 300  # in one market
CELLS = 48  # of one owner
SMALLEST = 0.03  # upper end of the first cell of positive losses, as a share of the privacy budget
POSITIVE = 1e-300  # lower end of that cell: a step owner asks her price for any positive loss
NEXT_TO_NOTHING = 1e-200  # lower end over upper end of a cell that begins at 0
MARKETS_AT_ONCE = 64
POINTS = 2**15  # of the table of V
LEAST = 0.1  # of the smallest upper end of a first cell: where the table begins
TEMPERATURES, STEPS = (0.05, 0.01, 0.003, 0.001), 6  # of the first ascent
LATER_TEMPERATURES, LATER_STEPS = (0.003, 0.001), 4
FIRST_CYCLES, CYCLES = 4, 2  # of ascent, removal and refinement, before a node is split
ROUNDING = 1e-9


@dataclass(frozen=True)
class Nodes:
    """N parts of the purchases of some markets, each a set of cells [low, high] for each owner.

    market      (N,)
    duals       (N, 3) v, u and mu
    bound       (N,) a lower bound of the error in this part
    low, high   (N, n, G) ends of the cells
    alive       (N, n, G) whether the part has the cell
    """

    market: NDArray[np.intp]
    duals: Floats
    bound: Floats
    low: Floats
    high: Floats
    alive: Bools

    def take(self, rows: Any) -> Nodes:
        return Nodes(*(getattr(self, field.name)[rows] for field in fields(self)))

    def joined(self, other: Nodes) -> Nodes:
        names = [field.name for field in fields(self)]
        return Nodes(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in names))


@dataclass(frozen=True)
class Cells:
    """The numbers that the bound uses of cells (N, n, G): inverse variance, cost, data share
    (N, n, 1); and whether mu is given."""

    inverse: Floats
    cost: Floats
    share: Floats
    alive: Bools
    penalised: bool = False


def proved_bound(
    truth: Profiles,
    budget: Floats,
    purchase: Floats,
    clip: float = 1.0,
    tolerance: float = TOLERANCE,
    most_nodes: int = MOST_NODES,
    error: MarketError | None = None,
) -> Floats:
    """(K,) lower bounds for markets with positive budgets (K,), given a purchase (K, n) in each.

    The bound stops at 1 - `tolerance` times the error of the purchase. `error` is what the markets
    count; None is the paper's reading, with the threshold `clip`.
    """
    counted = coordinate_error(clip) if error is None else error
    return _proved(truth, 1.0 / budget, purchase, tolerance, most_nodes, counted, penalised=False)


def proved_penalised_bound(
    truth: Profiles,
    price: Floats,
    purchase: Floats,
    tolerance: float = TOLERANCE,
    most_nodes: int = MOST_NODES,
    error: MarketError | None = None,
) -> Floats:
    """(K,) lower bounds of ERR + C^2 mu sum c, the error of any purchase and its cost at prices of
    money mu (K,), given a purchase (K, n) in each market.

    The bound is the same with mu given, and without the term -mu of a budget.
    """
    counted = coordinate_error() if error is None else error
    return _proved(truth, price, purchase, tolerance, most_nodes, counted, penalised=True)


def _proved(
    truth: Profiles,
    per_money: Floats,
    purchase: Floats,
    tolerance: float,
    most_nodes: int,
    counted: MarketError,
    penalised: bool,
) -> Floats:
    """(K,) the bounds, for some markets at a time; `per_money` as in `_BranchAndBound`."""
    largest, smallest = truth.privacy_budget.max(), truth.privacy_budget.min()
    noise = NoiseCurve.of(counted, float(largest), LEAST * SMALLEST * float(smallest), POINTS)
    parts = []
    for first in range(0, len(per_money), MARKETS_AT_ONCE):
        rows = slice(first, first + MARKETS_AT_ONCE)
        search = _BranchAndBound(
            truth.take(rows), per_money[rows], purchase[rows], tolerance, noise, penalised
        )
        parts.append(search.run(most_nodes))
    return np.concatenate(parts) * counted.radius**2 * (1.0 - ROUNDING)


class _BranchAndBound:
    """`per_money` (K,) turns money into the units of the cost: 1 / B, or the price of money if the
    problem is penalised. Then mu = 1 is no variable, and there is no budget."""

    def __init__(
        self,
        truth: Profiles,
        per_money: Floats,
        purchase: Floats,
        tolerance: float,
        noise: NoiseCurve,
        penalised: bool = False,
    ) -> None:
        self.truth, self.per_money, self.noise, self.penalised = truth, per_money, noise, penalised
        self.share = data_shares(truth.data_size)
        unit = _in_units_of_the_radius(noise.error)
        weights = weights_in(OptAggr(), purchase, truth.data_size, unit)
        parts = error_bound_in(unit, weights, purchase, truth.data_size)
        self.error = parts.total
        self.first_duals = _duals_of(weights, parts.variance, self.share)
        self.limit = np.ones(len(per_money))
        if penalised:
            self.error = self.error + truth.value(purchase).sum(axis=1) * per_money
            self.first_duals[:, 2] = 1.0
            self.limit = self.error
        self.cutoff = self.error * (1.0 - tolerance)

    def run(self, most_nodes: int) -> Floats:
        used = np.zeros(len(self.error), np.int64)
        lowest = self.cutoff.copy()
        nodes = self._solve(self._root(), FIRST_CYCLES, TEMPERATURES, STEPS)
        while len(nodes.market):
            used += np.bincount(nodes.market, minlength=len(used))
            given_up = used[nodes.market] > most_nodes
            np.minimum.at(lowest, nodes.market[given_up], nodes.bound[given_up])
            nodes = self._split(nodes.take(~given_up))
            nodes = self._solve(nodes, CYCLES, LATER_TEMPERATURES, LATER_STEPS)
        return lowest

    def _cost(self, market: NDArray[np.intp], loss: Floats) -> Floats:
        owners = self.truth.types.at((market, slice(None), None))
        return owners.value(loss) * self.per_money[market][:, None, None]

    def _cells(self, nodes: Nodes) -> Cells:
        return Cells(
            self.noise.precision_above(nodes.high),
            self._cost(nodes.market, nodes.low),
            self.share[nodes.market][:, :, None],
            nodes.alive,
            self.penalised,
        )

    def _root(self) -> Nodes:
        """All purchases: the loss 0, and cells of geometrically growing losses up to the budget.

        A cell that costs as much as the next one is left out: the next one has more privacy.
        """
        ends = SMALLEST ** (1.0 - np.arange(CELLS - 1) / (CELLS - 2))
        budget = self.truth.privacy_budget[:, :, None]
        low = budget * np.concatenate([[0.0, POSITIVE], ends[:-1]])
        high = budget * np.concatenate([[0.0], ends])
        market = np.arange(len(self.error))
        cost = self._cost(market, low)
        limit = self.limit[:, None, None]
        alive = cost <= limit * (1.0 + ROUNDING)
        alive[:, :, :-1] &= (cost[:, :, :-1] < cost[:, :, 1:]) | (cost[:, :, 1:] > limit)
        alive[:, :, 0] = True
        zero = np.zeros(len(market))
        return Nodes(market, self.first_duals, zero, low, high, alive)

    def _solve(
        self, nodes: Nodes, cycles: int, temperatures: tuple[float, ...], steps: int
    ) -> Nodes:
        """The nodes that are still open, with better duals, bounds and cells."""
        for cycle in range(cycles):
            if not len(nodes.market):
                break
            cells, error = self._cells(nodes), self.error[nodes.market]
            duals = _ascend(nodes.duals, cells, error, temperatures, steps)
            value, terms = _dual(duals, cells)
            cutoff = self.cutoff[nodes.market]
            slack = terms - terms.min(axis=2, keepdims=True)
            alive = nodes.alive & (value[:, None, None] + slack <= cutoff[:, None, None])
            bound = np.maximum(nodes.bound, value)
            nodes = replace(nodes, duals=duals, bound=bound, alive=alive)
            is_open = (bound < cutoff) & np.asarray(alive.any(axis=2)).all(axis=1)
            nodes, terms = nodes.take(is_open), terms[is_open]
            if cycle < cycles - 1:
                nodes = _refined(nodes, terms)
            temperatures, steps = LATER_TEMPERATURES, LATER_STEPS
        return nodes

    def _split(self, nodes: Nodes) -> Nodes:
        """Every node in two, at the mean loss of the owner for whom the bound is least exact.

        The bound mixes cells of an owner. Her inexactness is the error and cost of her mean
        purchase less the mean error and cost.
        """
        if not len(nodes.market):
            return nodes
        cells, rows = self._cells(nodes), np.arange(len(nodes.market))
        _, terms = _dual(nodes.duals, cells)
        mix = _mixture(terms, TEMPERATURES[-1] * 2.0 * self.error[nodes.market])[0]
        weight = _weights(nodes.duals, cells)
        middle = 0.5 * (nodes.low + nodes.high)
        loss, mean_weight = (mix * middle).sum(axis=2), (mix * weight).sum(axis=2)
        some = np.where(cells.inverse > 0, cells.inverse, 1.0)
        variance = (mix * weight**2 / some).sum(axis=2)
        excess = self.noise.unit_noise(mean_weight, np.maximum(loss, POSITIVE)) - variance
        mean_cost = (mix * cells.cost).sum(axis=2)
        excess += nodes.duals[:, 2:] * (
            self._cost(nodes.market, loss[:, :, None])[:, :, 0] - mean_cost
        )
        below = nodes.alive & (middle <= loss[:, :, None])
        above = np.asarray(nodes.alive & ~below)
        both = below.any(axis=2) & above.any(axis=2)
        owner = np.where(both, excess, -np.inf).argmax(axis=1)
        lower, upper = nodes.alive.copy(), nodes.alive.copy()
        lower[rows, owner], upper[rows, owner] = below[rows, owner], above[rows, owner]
        halves = replace(nodes, alive=lower).joined(replace(nodes, alive=upper))
        terms = np.concatenate([terms, terms])
        filled = np.asarray(halves.alive.any(axis=2)).all(axis=1)
        return _refined(halves.take(filled), terms[filled])


def _in_units_of_the_radius(error: MarketError) -> MarketError:
    """The same error with C = 1."""
    if error.kind == "coordinate":
        return coordinate_error(1.0)
    squared = error.radius**2
    return MarketError(error.kind, lambda loss: error.variance(loss) / squared, 1.0)


def _duals_of(weights: Floats, variance: Floats, share: Floats) -> Floats:
    """(K, 3) duals to begin with: about those of a purchase that is optimal (section 1).

    Its weights are (K, n), and the variance of their sum is (K,).
    """
    up = np.maximum(weights - share, 0.0).sum(axis=1)
    return np.stack([variance + 2.0 * up, variance - 2.0 * up, variance], axis=1)


def _columns(duals: Floats) -> tuple[Floats, Floats, Floats]:
    v, u, mu = duals.T[:, :, None, None]
    return v, u, mu


def _weights(duals: Floats, cells: Cells) -> Floats:
    """(N, n, G) the weight at which h_i has its minimum."""
    v, u, _ = _columns(duals)
    return np.maximum(u * cells.inverse, np.minimum(cells.share, v * cells.inverse))


def _dual(duals: Floats, cells: Cells) -> tuple[Floats, Floats]:
    """The bound (N,), and its terms h_i + mu c_i (N, n, G); these are infinite in removed cells."""
    v, u, mu = _columns(duals)
    h = part_of_error(cells.inverse, u, v, cells.share)
    terms = np.where(cells.alive, h + mu * cells.cost, np.inf)
    return _constant(duals, cells) + terms.min(axis=2).sum(axis=1), terms


def _constant(duals: Floats, cells: Cells) -> Floats:
    v, u, mu = duals.T
    return np.asarray(2.0 * v - (0.0 if cells.penalised else mu) - 0.25 * (v - u) ** 2)


def _mixture(terms: Floats, temperature: Floats) -> tuple[Floats, Floats]:
    """The probabilities (N, n, G) proportional to exp(-terms / temperature), and the smooth minimum
    (N, n)."""
    least = terms.min(axis=2, keepdims=True)
    odds = np.exp((least - terms) / temperature[:, None, None])
    total = odds.sum(axis=2, keepdims=True)
    return odds / total, least[:, :, 0] - temperature[:, None] * np.log(total[:, :, 0])


def _smooth(duals: Floats, cells: Cells, temperature: Floats) -> tuple[Floats, Floats, Floats]:
    """Value (N,), gradient (N, 3) and Hessian (N, 3, 3) of the bound with smooth minima."""
    v, u, _ = _columns(duals)
    _, terms = _dual(duals, cells)
    mix, least = _mixture(terms, temperature)
    weight = _weights(duals, cells)
    low = np.minimum(weight, cells.share)
    slopes = np.stack([-2.0 * low, -2.0 * (weight - low), cells.cost], axis=3)
    weighted = mix[..., None] * slopes
    mean = weighted.sum(axis=2)
    apart = 0.5 * (duals[:, 0] - duals[:, 1])
    gradient = mean.sum(axis=1) + np.stack([2.0 - apart, apart, -np.ones_like(apart)], axis=1)
    count = len(duals)
    square = weighted.reshape(count, -1, 3).transpose(0, 2, 1) @ slopes.reshape(count, -1, 3)
    spread = square - mean.transpose(0, 2, 1) @ mean
    hessian = -spread / temperature[:, None, None]
    hessian[:, :2, :2] -= 0.5 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    for place, moves in (
        (0, v * cells.inverse <= cells.share),
        (1, u * cells.inverse >= cells.share),
    ):
        hessian[:, place, place] -= 2.0 * (mix * cells.inverse * moves).sum(axis=(1, 2))
    if cells.penalised:
        gradient[:, 2] = hessian[:, 2] = hessian[:, :, 2] = 0.0
    return _constant(duals, cells) + least.sum(axis=1), gradient, hessian


def _ascend(
    duals: Floats, cells: Cells, error: Floats, temperatures: tuple[float, ...], steps: int
) -> Floats:
    """Better duals, by damped Newton steps on the smooth bound with falling temperatures."""
    damping = np.full(len(duals), 1e-2)
    for temperature in temperatures:
        state = _smooth(duals, cells, temperature * error)
        for _ in range(steps):
            value, gradient, hessian = state
            diagonal = np.eye(3) * (1.0 - hessian)
            system = damping[:, None, None] * diagonal - hessian
            tried = duals + np.linalg.solve(system, gradient[:, :, None])[:, :, 0]
            tried[:, 2] = np.maximum(tried[:, 2], 0.0)
            tried[:, 1] = np.minimum(tried[:, 1], tried[:, 0])
            new = _smooth(tried, cells, temperature * error)
            better = new[0] > value
            duals = np.where(better[:, None], tried, duals)
            state = (
                np.where(better, new[0], value),
                np.where(better[:, None], new[1], gradient),
                np.where(better[:, None, None], new[2], hessian),
            )
            damping = np.clip(np.where(better, 0.2, 6.0) * damping, 1e-8, 1e8)
    return duals


def _refined(nodes: Nodes, terms: Floats) -> Nodes:
    """The nodes with removed cells replaced by halves of the cells with the least terms."""
    order = np.argsort(np.where(nodes.alive, terms, np.inf), axis=2, kind="stable")
    low, high = np.take_along_axis(nodes.low, order, 2), np.take_along_axis(nodes.high, order, 2)
    middle = np.where(low <= NEXT_TO_NOTHING * high, 0.5 * high, np.sqrt(low * high))
    count = nodes.alive.sum(axis=2, keepdims=True)
    halved = np.minimum(CELLS - count, count)
    place = np.broadcast_to(np.arange(CELLS), low.shape)
    source = np.clip(place - count, 0, CELLS - 1)
    is_half = (place >= count) & (place < count + halved)
    new_low = np.where(is_half, np.take_along_axis(middle, source, 2), low)
    new_high = np.where(
        is_half, np.take_along_axis(high, source, 2), np.where(place < halved, middle, high)
    )
    alive = (place < count) | (is_half & (new_high > 0))
    return replace(nodes, low=new_low, high=new_high, alive=alive)
