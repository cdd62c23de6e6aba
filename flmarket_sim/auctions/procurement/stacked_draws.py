"""Several draws of K markets as the rows of one market batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Outcome
from flmarket_sim.auctions.market_scale import InScale
from flmarket_sim.owners.bids import BidBatch

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StackedDraws:
    """Turns and coins of D draws in K markets, each (D K, n): the markets of the first draw come
    first.

    `order` has the owners in the order of their turns, and `coin` a uniform number for each.
    """

    count: int
    order: Ints
    coin: Floats

    @classmethod
    def of(cls, rngs: Sequence[np.random.Generator], shape: tuple[int, int]) -> StackedDraws:
        """One draw for each generator."""
        turns, coins = np.stack([rng.random((2, *shape)) for rng in rngs], axis=1)
        n = shape[1]
        return cls(len(rngs), turns.reshape(-1, n).argsort(axis=1), coins.reshape(-1, n))

    def each(self, values: Floats) -> Floats:
        """Values of the K markets, for the markets of every draw."""
        return np.tile(values, (self.count,) + (1,) * (values.ndim - 1))

    def outcomes(
        self, bids: BidBatch, market: InScale, sells: Bools, payment: Floats
    ) -> list[Outcome]:
        """The outcome of each draw, from who sells, whole, and is paid what in all markets."""
        return [
            Outcome(np.where(sold, bids.privacy_budget, 0.0), market.in_money(paid))
            for sold, paid in zip(
                np.split(sells, self.count), np.split(payment, self.count), strict=True
            )
        ]
