"""OptAggr, solved exactly (docs/theory.md, section 1), and the two published approximations of it.

With inv_i = 1 / V_i, the inverse variance of what owner i releases (e_i^2 / (8 L^2) in the paper),
the KKT conditions leave two scalars u <= v:

    l_i = max(u inv_i, min(W_i, v inv_i))                    (0 for losers)
    up(u) = sum max(0, u inv_i - W_i)                        mass moved up
    v(u)  = u + 2 L^2 (2 up(u) - h)                          h: losers' mass that the bias term
          forgets
    g(u)  = up(u) - sum max(0, W_i - v(u) inv_i) - m = 0     m: losers' mass, 1 - sum of winners' W

g is increasing and piecewise linear, and g >= 0 at 1 / sum(inv), so Newton's method with a bracket
ends on the exact root once it is on the right piece. The bound counts all losers' mass in the bias
(h = 0). The paper's Problem 3 drops it (h = m), the authors' code renormalises W over the winners
(m = h = 0).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.aggregation.rule import Floats, check_inputs, check_variance, data_shares

MAX_STEPS = 200
ROUNDING = 4e-16


def solve(inverse_variance: Floats, share: Floats, forgets_losers: bool, clip: float) -> Floats:
    """(K, n) optimal weights for rows with at least one positive inverse variance."""
    return solve_with_duals(inverse_variance, share, forgets_losers, clip)[0]


def solve_with_duals(
    inverse_variance: Floats, share: Floats, forgets_losers: bool = False, clip: float = 1.0
) -> tuple[Floats, Floats, Floats]:
    """(K, n) optimal weights, and u and v (K,) of every market.

    Rows need a positive inverse variance. They are scaled so that sum(inv) = 1: the root u then
    lies in [0, 1] whatever the privacy losses.
    """
    markets, n = inverse_variance.shape
    transposed = markets > n  # owners along the first axis: sums then add whole rows at once
    axis = 0 if transposed else 1
    inv, w = (
        (inverse_variance.T.copy(), share.T.copy()) if transposed else (inverse_variance, share)
    )
    scale = inv.sum(axis=axis, keepdims=True)
    inv = inv / scale
    w = w * (inv > 0)
    losers = np.maximum(1.0 - w.sum(axis=axis, keepdims=True), 0.0)
    pull = 2.0 * clip**2 * scale
    forgotten = losers if forgets_losers else np.zeros_like(losers)

    u = _root(inv, w, losers, pull, forgotten, axis)
    up = np.maximum(u * inv - w, 0.0).sum(axis=axis, keepdims=True)
    v = u + pull * (2.0 * up - forgotten)
    weights = np.maximum(u * inv, np.minimum(w, v * inv))
    weights /= weights.sum(axis=axis, keepdims=True)
    duals = ((x / scale).ravel() for x in (u, v))
    return (np.asarray(weights.T if transposed else weights), *duals)


def part_of_error(x: Floats, u: Floats, v: Floats, share: Floats | float) -> Floats:
    """h(x) = min over l of [l^2 / x - 2 v l + 2 (v - u) max(0, l - W)], elementwise.

    It is an owner's part of the error for u and v, with x her inverse variance (docs/theory.md,
    section 4).
    """
    stays = share**2 / np.where(x > 0, x, 1.0) - 2.0 * v * share
    pulled_up = -(u**2) * x - 2.0 * (v - u) * share
    return np.where(v * x <= share, -(v**2) * x, np.where(u * x >= share, pulled_up, stays))


def _root(
    inv: Floats, w: Floats, losers: Floats, pull: Floats, forgotten: Floats, axis: int
) -> Floats:
    """(1, K) or (K, 1) the root u of g for every market; solved markets leave the loop."""
    root = np.ones_like(losers)
    unsolved = np.arange(root.size)
    u, low, high = root.copy(), np.zeros_like(root), root.copy()
    for _ in range(MAX_STEPS):
        over = u * inv - w
        above = over > 0
        up = (over * above).sum(axis=axis, keepdims=True)
        up_slope = (inv * above).sum(axis=axis, keepdims=True)
        under = w - (u + pull * (2.0 * up - forgotten)) * inv
        below = under > 0
        g = up - (under * below).sum(axis=axis, keepdims=True) - losers
        slope = up_slope + (1.0 + 2.0 * pull * up_slope) * (inv * below).sum(
            axis=axis, keepdims=True
        )
        rising = g >= 0
        high = np.where(rising, u, high)
        low = np.where(rising, low, u)
        step = u - g / np.maximum(slope, 1e-300)
        done = (
            (np.abs(g) <= ROUNDING)
            | (np.abs(step - u) <= ROUNDING * u)
            | (high - low <= ROUNDING * high)
        )
        if done.any():
            root.flat[unsolved] = u.ravel()
            left = np.flatnonzero(~done)
            if not len(left):
                return root
            unsolved = unsolved[left]
            inv, w, losers, pull, forgotten, u, low, high, step = (
                np.take(a, left, axis=1 - axis)
                for a in (inv, w, losers, pull, forgotten, u, low, high, step)
            )
        inside = (step > low) & (step < high)
        u = np.where(inside, step, 0.5 * (low + high))
    root.flat[unsolved] = u.ravel()
    return root


def optimal_weights(
    privacy_loss: ArrayLike,
    data_size: ArrayLike,
    clip: float,
    variance: ArrayLike | None = None,
    *,
    winners_only: bool,
    forgets_losers: bool,
) -> Floats:
    loss, size = check_inputs(privacy_loss, data_size, clip)
    noise = None if variance is None else check_variance(variance, loss, clip)
    share = data_shares(size)
    sells = loss > 0
    valid = sells.any(axis=1)
    weights = share.copy()
    if not valid.any():
        return weights
    whole = bool(valid.all())
    loss, share = (loss, share) if whole else (loss[valid], share[valid])
    if winners_only:
        share = np.where(loss > 0, share, 0.0)
        share = share / share.sum(axis=1, keepdims=True)
    if noise is None:
        largest = loss.max(axis=1, keepdims=True)
        inverse_variance = (loss / largest) ** 2 * (largest**2 / (COORDINATE_KAPPA * clip**2))
    else:
        inverse_variance = 1.0 / noise[valid]
    weights[valid] = solve(inverse_variance, share, forgets_losers, clip)
    return weights


class OptAggr:
    """The weights that minimise the error bound, exactly (the paper's Problem 1)."""

    name = "opt-aggr"

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        return optimal_weights(
            privacy_loss, data_size, clip, variance, winners_only=False, forgets_losers=False
        )


class OptAggrPaper:
    """The paper's Problem 3: the losers' share of the bias is left out. For reproduction."""

    name = "opt-aggr-paper"

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        return optimal_weights(
            privacy_loss, data_size, clip, variance, winners_only=False, forgets_losers=True
        )


class OptAggrWinners:
    """The authors' code: data shares renormalised over the winners. For reproduction."""

    name = "opt-aggr-winners"

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        return optimal_weights(
            privacy_loss, data_size, clip, variance, winners_only=True, forgets_losers=False
        )
