"""What constraints on weights allow in one market, and how far they give way in it.

A run must not stop because few owners delivered. So a constraint that no weights can satisfy in a
market gives way there, as little as possible, in this order: the cap to 1 / (owners with a weight);
then fairness to the least difference under that cap; then bias to the least bias under both. All
three are formulas. With S the data share of the sellers of the first group among all sellers and L
the weight of the group,

    L / S - (1 - L) / (1 - S) = (L - S) / (S (1 - S)),

so that fairness between two groups is an interval for L, and a cap c allows
1 - c (owners of the other group) <= L <= c (owners of the group).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.rule import Floats

Flags = NDArray[np.bool_]
SAME = 1e-12  # differences of weights below this are rounding


@dataclass(frozen=True)
class Limits:
    """What each of R supports of a market allows; every field is (R,).

    cap           the largest weight of an owner
    low, high     the least and the largest weight of the first group
    bias          the largest sum_i |l_i - W_i|
    unfairness    by how much fairness gave way, as a difference of ratios
    more_bias     by how much bias gave way
    """

    cap: Floats
    low: Floats
    high: Floats
    bias: Floats
    unfairness: Floats
    more_bias: Floats


@dataclass(frozen=True)
class Box:
    """What one support of a market allows, owner by owner.

    lower, upper    (n,) the least and the largest weight of each owner
    low, high       the least and the largest weight of the first group
    bias            the largest sum_i |l_i - W_i|, infinite where the other fields bound it
    """

    lower: Floats
    upper: Floats
    low: float
    high: float
    bias: float


def limits(
    share: Floats,
    sells: Flags,
    first_group: Flags,
    supports: Flags,
    cap: float,
    fairness: float,
    bias: float,
) -> Limits:
    """The limits of weights on each of the supports (R, n) of a market.

    share (n,) counts all bidders, sells (n,) says who sold, and first_group (n,) who is in the
    first of two groups. A group in which nobody sells is compared with nothing.
    """
    members = (supports & first_group).sum(axis=1)
    others = supports.sum(axis=1) - members
    largest = np.maximum(cap, 1.0 / (members + others))
    sold = share * sells
    part = float(sold[first_group].sum() / sold.sum())
    width = part * (1.0 - part)
    compared = bool((sells & first_group).any() and (sells & ~first_group).any())
    wanted_low = part - fairness * width if compared else 0.0
    wanted_high = part + fairness * width if compared else 1.0
    least, most = np.maximum(1.0 - largest * others, 0.0), np.minimum(largest * members, 1.0)
    low, high = np.clip(wanted_low, least, most), np.clip(wanted_high, least, most)
    beyond = np.maximum(np.maximum(low - wanted_high, wanted_low - high), 0.0)
    unavoidable = _least_bias(share, first_group, supports, largest, low, high)
    return Limits(
        cap=largest,
        low=low,
        high=high,
        bias=np.maximum(bias, unavoidable),
        unfairness=beyond / width if compared else np.zeros(len(supports)),
        more_bias=np.maximum(unavoidable - bias, 0.0),
    )


def _least_bias(
    share: Floats, first_group: Flags, supports: Flags, cap: Floats, low: Floats, high: Floats
) -> Floats:
    """(R,) the least sum |l - W|: data shares up to the cap, and the rest is moved."""
    kept = np.where(supports, np.minimum(share, cap[:, None]), 0.0)
    first = kept[:, first_group].sum(axis=1)
    second = kept[:, ~first_group].sum(axis=1)
    weight = np.clip(first, low, high)
    cut = 1.0 - first - second
    return np.asarray(cut + np.abs(weight - first) + np.abs(1.0 - weight - second))


def box(share: Floats, first_group: Flags, support: Flags, limit: Limits) -> Box:
    """The limits of one support (n,), with `limit` of this support alone.

    A constraint that gave way leaves a set without inner points, in which a solver loses its way.
    Such a set is stated owner by owner here. If a group is at the end of what the cap allows, its
    members are at the cap or at 0. If the bias is the least possible, no owner of a group that
    moves up is below her data share, and none of a group that moves down is above it.
    """
    cap, low, high, bias = (float(a[0]) for a in (limit.cap, limit.low, limit.high, limit.bias))
    lower, upper = np.zeros_like(share), np.where(support, cap, 0.0)
    groups = (support & first_group, support & ~first_group)
    kept = np.where(support, np.minimum(share, cap), 0.0)
    first, second = (float(kept[group].sum()) for group in groups)
    if bias <= _least_bias(share, first_group, support[None], *_rows(cap, low, high))[0] + SAME:
        bias = np.inf
        if max(low, first) <= min(high, 1.0 - second):
            low, high = max(low, first), min(high, 1.0 - second)
        else:
            low = high = high if first > high else low
        for group, weight, own in ((groups[0], high, first), (groups[1], 1.0 - low, second)):
            if weight >= own:
                lower = np.where(group, kept, lower)
            else:
                upper = np.where(group, kept, upper)
    for group, least, most in ((groups[0], low, high), (groups[1], 1.0 - high, 1.0 - low)):
        if most <= lower[group].sum() + SAME:
            upper = np.where(group, lower, upper)
        elif least >= upper[group].sum() - SAME:
            lower = np.where(group, upper, lower)
    return Box(lower, upper, low, high, bias)


def least_bias(share: Floats, first_group: Flags, limit: Box) -> Floats:
    """(n,) weights in a box with the least bias: data shares, moved evenly where they must be."""
    weights = np.clip(share, limit.lower, limit.upper)
    first = float(np.clip(weights[first_group].sum(), limit.low, limit.high))
    for group, total in ((first_group, first), (~first_group, 1.0 - first)):
        missing = total - float(weights[group].sum())
        room = (limit.upper - weights if missing > 0 else weights - limit.lower) * group
        weights = weights + missing * room / max(float(room.sum()), np.finfo(float).tiny)
    return np.asarray(np.clip(weights, limit.lower, limit.upper))


def _rows(*values: float) -> list[Floats]:
    return [np.array([value]) for value in values]
