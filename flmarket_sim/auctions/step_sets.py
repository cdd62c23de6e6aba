"""Which step owners to buy: all sets that can be the best, or in large markets those of a search.

A step owner asks the same for any sale, so she sells her whole privacy budget or nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.greedy import admit

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

MOST_ENUMERATED = 14  # step owners in a market; with more of them only some sets are tried
MOST_EXCHANGES = 500  # that are tried from one set
ROUNDING = 1 + 1e-12


def all_sets(step: Bools, price: Floats, cash: Floats) -> tuple[Rows, Bools]:
    """Market (R,) and members (R, n) of every set of step owners that can be the best.

    All K markets have the same number of step owners. A set is left out if it costs more than
    `cash` (K,), or if it leaves enough money for one more step owner and everything that the other
    owners sell: that owner can be added, and more privacy never has a larger error.
    """
    owners = np.argsort(~step, axis=1, kind="stable")[:, : int(step.sum(axis=1).max())]
    chosen = np.array(list(itertools.product((False, True), repeat=owners.shape[1])), bool)
    asked = np.take_along_axis(price, owners, 1)
    cost = asked @ chosen.T.astype(np.float64)
    left = cash[:, None] * ROUNDING - cost
    more = np.where(chosen[None], np.inf, asked[:, None, :]).min(axis=2, initial=np.inf)
    rest = np.where(step, 0.0, price).sum(axis=1)[:, None]
    market, number = np.nonzero((left >= 0) & (left - rest < more * ROUNDING))
    members = np.zeros((len(market), step.shape[1]), bool)
    np.put_along_axis(members, owners[market], chosen[number], 1)
    return market, members


def some_sets(
    step: Bools, price: Floats, cash: Floats, worths: Sequence[Floats]
) -> tuple[Rows, Bools]:
    """Market (R,) and members (R, n) of sets bought greedily with several shares of the money.

    `worths` (K, n) are guesses of what a whole sale is worth to the buyer. The orders are price
    over worth, price, and worth alone.
    """
    nobody = np.zeros(step.shape, bool)
    found = [
        _filled(nobody, step, price, share * cash, score)
        for worth in worths
        for score in (price / worth, price, -worth)
        for share in np.linspace(0.0, 1.0, 9)
    ]
    return np.tile(np.arange(len(step)), len(found)), np.concatenate(found)


def neighbours(
    members: Bools, step: Bools, price: Floats, cash: Floats, worths: Sequence[Floats]
) -> tuple[Rows, Bools]:
    """Market (R,) and members (R, n) of the affordable sets in which one step owner, or two, are
    exchanged against `members` (K, n): as they are, and with the rest of the money spent on more
    step owners."""
    found = []
    pairs = list(itertools.combinations_with_replacement(range(step.shape[1]), 2))
    if len(pairs) > MOST_EXCHANGES:
        some = np.random.default_rng(0).choice(len(pairs), MOST_EXCHANGES, replace=False)
        pairs = [pairs[number] for number in some]
    for i, j in pairs:
        changed = members.copy()
        changed[:, [i, j]] ^= step[:, [i, j]]
        others = step & (np.arange(step.shape[1]) != i) & (np.arange(step.shape[1]) != j)
        left = cash - np.where(changed, price, 0.0).sum(axis=1)
        found.append(changed)
        found += [_filled(changed, others, price, left, price / worth) for worth in worths]
    market, sets = np.tile(np.arange(len(members)), len(found)), np.concatenate(found)
    affordable = np.where(sets, price[market], 0.0).sum(axis=1) <= cash[market]
    return market[affordable], sets[affordable]


def _filled(members: Bools, step: Bools, price: Floats, left: Floats, score: Floats) -> Bools:
    """The sets with the step owners that the money `left` (K,) buys too, in order of the score."""
    asked = np.where(step & ~members, price, np.inf)
    order = np.argsort(np.where(np.isfinite(asked), score, np.inf), axis=1, kind="stable")
    value = np.take_along_axis(asked, order, 1)
    more = np.zeros(members.shape, bool)
    money = np.broadcast_to(np.maximum(left, 0.0)[:, None], value.shape)
    np.put_along_axis(more, order, admit(value, money), 1)
    return members | more
