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
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA
from flmarket_sim.aggregation.rule import Floats, check_inputs, check_variance, data_shares

MAX_STEPS = 200
ROUNDING = 4e-16
STRONGEST_PULL = 1e250  # towards data shares: stronger ones give the same weights
LOST_DIGITS = 1e-9  # in the sum of weights
SMALLEST_SHARE = 1e-290  # of all winners: smaller ones have lost digits
Exponents = NDArray[np.int32]


def solve(
    inverse_variance: Floats,
    share: Floats,
    forgets_losers: bool,
    clip: float,
    exponent: Exponents | None = None,
) -> Floats:
    """(K, n) optimal weights for rows with at least one positive inverse variance.

    With an exponent (K,), the inverse variances of a market are so many powers of two larger.
    """
    return solve_with_duals(inverse_variance, share, forgets_losers, clip, exponent)[0]


def solve_with_duals(
    inverse_variance: Floats,
    share: Floats,
    forgets_losers: bool = False,
    clip: float = 1.0,
    exponent: Exponents | None = None,
) -> tuple[Floats, Floats, Floats]:
    """(K, n) optimal weights, and u and v (K,) of every market, in units of 2^-exponent.

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
    if exponent is not None:
        with np.errstate(over="ignore"):
            pull = np.minimum(np.ldexp(pull, exponent.reshape(pull.shape)), STRONGEST_PULL)
    forgotten = losers if forgets_losers else np.zeros_like(losers)

    u = _root(inv, w, losers, pull, forgotten, axis)
    up = np.maximum(u * inv - w, 0.0).sum(axis=axis, keepdims=True)
    v = u + pull * (2.0 * up - forgotten)
    weights = np.maximum(u * inv, np.minimum(w, v * inv))
    for k in np.flatnonzero(np.abs(weights.sum(axis=axis) - 1.0) > LOST_DIGITS):
        market = (slice(None), k) if transposed else (k, slice(None))
        v.flat[k] = _top(inv[market], w[market], u.flat[k])
        weights[market] = np.maximum(
            u.flat[k] * inv[market], np.minimum(w[market], v.flat[k] * inv[market])
        )
    weights /= weights.sum(axis=axis, keepdims=True)
    with np.errstate(over="ignore"):
        low, high = ((x / scale).ravel() for x in (u, v))
    return np.asarray(weights.T if transposed else weights), low, high


def _top(inv: Floats, w: Floats, u: float) -> float:
    """The v of one market (n,) at which its weights sum to 1.

    A strong pull multiplies the rounding of up(u), so that v(u) has no digits. Then the sum tells.
    """
    moves = u * inv < w
    if not moves.any():
        return u
    fixed = u * inv[~moves].sum()
    order = np.argsort(w[moves] / inv[moves])
    share, inv = w[moves][order], inv[moves][order]
    bend = share / inv
    missing = 1.0 - fixed - (np.cumsum(share) - share)
    slope = np.cumsum(inv[::-1])[::-1]
    reached = bend * slope >= missing
    at = int(reached.argmax()) if reached.any() else -1
    return float(np.clip(missing[at] / slope[at], u, bend[at]))


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
    loss, share, size = (a if whole else a[valid] for a in (loss, share, size))
    if winners_only:
        share = _shares_of_winners(share, size, loss > 0)
    if noise is None:
        inverse_variance, exponent = _inverse_of_losses(loss, clip)
    else:
        inverse_variance, exponent = _inverse_of_noise(noise[valid])
    weights[valid] = solve(inverse_variance, share, forgets_losers, clip, exponent)
    return weights


def _shares_of_winners(share: Floats, size: Floats, sells: NDArray[np.bool_]) -> Floats:
    """(K, n) data shares among the winners. Next to a giant who lost they may be too small to be
    numbers, and are then computed from the sizes."""
    share = np.where(sells, share, 0.0)
    small = np.flatnonzero(share.sum(axis=1) < SMALLEST_SHARE)
    share[small] = np.where(sells[small], size[small], 0.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _inverse_of_losses(loss: Floats, clip: float) -> tuple[Floats, Exponents]:
    """e^2 / (8 L^2) as numbers (K, n) and powers of two (K,), so that no loss is too small."""
    largest = loss.max(axis=1, keepdims=True)
    mantissa, exponent = np.frexp(largest)
    inverse = (loss / largest) ** 2 * (mantissa**2 / (COORDINATE_KAPPA * clip**2))
    return inverse, 2 * exponent[:, 0]


def _inverse_of_noise(noise: Floats) -> tuple[Floats, Exponents]:
    """1 / V as numbers (K, n) and powers of two (K,), so that no variance is too small."""
    exponent = np.frexp(noise.min(axis=1, keepdims=True))[1]
    with np.errstate(over="ignore"):
        return 1.0 / np.ldexp(noise, -exponent), -exponent[:, 0]


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
