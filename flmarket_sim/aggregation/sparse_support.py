"""Which owners get a weight if at most k may: a search over supports.

A support is a set of k sellers; the other sellers are treated like owners who sold nothing, and
their data shares still count in the bias. The best weights on a support without other constraints
are `opt-aggr`'s, for many supports at once, and their error is a lower bound of the error under
constraints. If a market has at most `ENUMERATED` supports, all of them are compared. Beyond that,
sellers are dropped one by one, each time the one whose loss costs the least error (backward
elimination), and then single sellers are exchanged as long as that helps; the result is good but
not proved to be the best.

Supports on which fewer constraints have to give way come first (`constraint_limits.py`): supports
are compared by unfairness, then by bias, then by error.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np

from flmarket_sim.aggregation.constraint_limits import Flags, Limits
from flmarket_sim.aggregation.convex_owners import OneMarket
from flmarket_sim.aggregation.opt_aggr import solve
from flmarket_sim.aggregation.rule import Floats

ENUMERATED = 5_000  # supports
SAME = 1e-9  # differences of unfairness and bias below this do not decide
Allowed = Callable[[Flags], Limits]  # supports (R, n) to their limits


def supports(market: OneMarket, k: int, allowed: Allowed) -> tuple[Flags, Floats]:
    """(R, n) supports in the order in which they should be tried, and (R,) lower bounds of their
    errors. Supports on which more constraints give way than on the first one are left out."""
    sellers = np.flatnonzero(market.sells)
    if len(sellers) <= k:
        candidates = market.sells[None]
    elif comb(len(sellers), k) <= ENUMERATED:
        chosen = np.array(list(combinations(sellers, k)))
        candidates = _flags(chosen, len(market.sells))
    else:
        candidates = _exchanged(market, _eliminated(market, k, allowed), allowed)[None]
    errors = least_errors(market, candidates)
    order = _ranked(allowed(candidates), errors)
    return candidates[order], errors[order]


def least_errors(market: OneMarket, candidates: Flags) -> Floats:
    """(R,) the error bound of `opt-aggr` on each support (R, n), in the unit of the variance."""
    precision = np.where(candidates, 1.0 / market.variance, 0.0)
    share = np.broadcast_to(market.share, candidates.shape)
    weights = solve(precision, share, False, market.radius)
    noise = np.where(candidates, np.where(market.sells, market.variance, 0.0), 0.0)
    variance = (np.square(weights) * noise).sum(axis=1)
    bias = market.radius * np.abs(weights - market.share).sum(axis=1)
    return np.asarray(variance + np.square(bias))


def _ranked(limit: Limits, errors: Floats) -> np.ndarray:
    """Rows by error, of those on which constraints give way the least."""
    fair = limit.unfairness <= limit.unfairness.min() + SAME
    least = limit.more_bias[fair].min()
    rows = np.flatnonzero(fair & (limit.more_bias <= least + SAME))
    return np.asarray(rows[np.argsort(errors[rows], kind="stable")])


def _eliminated(market: OneMarket, k: int, allowed: Allowed) -> Flags:
    """(n,) the support that is left when sellers are dropped one by one."""
    support = market.sells.copy()
    while support.sum() > k:
        members = np.flatnonzero(support)
        candidates = np.repeat(support[None], len(members), axis=0)
        candidates[np.arange(len(members)), members] = False
        support = candidates[_ranked(allowed(candidates), least_errors(market, candidates))[0]]
    return np.asarray(support)


def _exchanged(market: OneMarket, support: Flags, allowed: Allowed) -> Flags:
    """(n,) the support after exchanges of one member for one other seller, while they help."""
    while True:
        members, others = np.flatnonzero(support), np.flatnonzero(market.sells & ~support)
        pairs = np.array([(a, b) for a in members for b in others])
        candidates = np.repeat(support[None], len(pairs) + 1, axis=0)
        candidates[np.arange(len(pairs)), pairs[:, 0]] = False
        candidates[np.arange(len(pairs)), pairs[:, 1]] = True  # the last one is the support itself
        errors = least_errors(market, candidates)
        best = _ranked(allowed(candidates), errors)[0]
        if best == len(pairs) or errors[best] >= errors[-1] * (1 - 1e-12):
            return support
        support = candidates[best]


def _flags(members: np.ndarray, n: int) -> Flags:
    flags = np.zeros((len(members), n), bool)
    np.put_along_axis(flags, members, True, axis=1)
    return flags
