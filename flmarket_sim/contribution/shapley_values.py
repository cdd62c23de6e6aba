"""Shapley values of K games at once: exact ones, and means over random orders of the players."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def all_coalitions(players: int) -> Bools:
    """(2^n, n) the members of every coalition: number s has player i if bit i of s is set."""
    return np.asarray((np.arange(2**players)[:, None] >> np.arange(players)) & 1 == 1)


def exact_values(worth: Floats, member: Bools) -> Floats:
    """(K, n) sums over coalitions without i of what she adds, each with its chance.

    `worth` (K, 2^n) is that of `all_coalitions`, which are `member` (2^n, n).
    """
    n = member.shape[1]
    numbers, others = np.arange(len(member)), member.sum(axis=1)
    value = np.empty((len(worth), n))
    for i in range(n):
        without = numbers[~member[:, i]]
        chance = np.array([1.0 / (n * comb(n - 1, int(m))) for m in others[without]])
        value[:, i] = (worth[:, without + (1 << i)] - worth[:, without]) @ chance
    return value


def prefixes(order: Ints) -> Bools:
    """(K, P n, n) the coalitions that grow along orders (K, P, n), from one player to all."""
    markets, orders, n = order.shape
    place = order.argsort(axis=2)  # of each player
    prefix = place[:, :, None, :] <= np.arange(n)[:, None]
    return prefix.reshape(markets, orders * n, n)


def added_in_order(worth: Floats, nobody: Floats, order: Ints) -> Floats:
    """(K, P, n) what each player adds to those before her in orders (K, P, n).

    `worth` (K, P n) is that of `prefixes`, and `nobody` (K,) that of no player.
    """
    markets, orders, n = order.shape
    before = np.concatenate(
        [
            np.broadcast_to(nobody[:, None, None], (markets, orders, 1)),
            worth.reshape(markets, orders, n),
        ],
        axis=2,
    )
    return np.take_along_axis(np.diff(before, axis=2), order.argsort(axis=2), axis=2)
