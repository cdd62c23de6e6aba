"""Auctions that buy whole privacy budgets: the most that they pay one owner, piece by piece.

Such an auction sees of an owner's sale only an amount x, which rises with her privacy budget and
her records (all-in: x = records x budget). While all others stay as they are, the most that it pays
for x over all values that she may report is a maximum over pieces

    low <= x <= high :    min(cap, rate x, B x / (rest + x)).

Every piece rises with x. So over a box of (privacy budget, records) the payment is at most that of
the largest x in the piece, and the cost at least that of the smallest sale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.misreports import Floats

Amount = Callable[[Floats, Floats], Floats]
SLACK = 1e-9  # relative, outwards
DUST = 1e-6


@dataclass(frozen=True)
class PaymentPieces:
    """Pieces (P,) of the payment of one owner for an amount x, and the buyer's money B."""

    low: Floats
    high: Floats
    cap: Floats
    rate: Floats
    rest: Floats
    money: float

    @classmethod
    def of(cls, pieces: list[dict[str, float]], money: float) -> PaymentPieces:
        """Pieces by name; what is left out does not limit."""
        free = {"low": 0.0, "high": np.inf, "cap": np.inf, "rate": np.inf, "rest": 0.0}
        columns = ([{**free, **piece}[name] for piece in pieces] for name in free)
        low, high, cap, rate, rest = (np.array(column, float) for column in columns)
        return cls(low, high, cap, rate, rest, money)

    def most(self, least: Floats, largest: Floats) -> Floats:
        """(B,) the most that is paid for amounts between two ends (B,); 0 if none is bought."""
        x = np.minimum(largest[:, None], self.high * (1 + SLACK))
        inside = (self.low * (1 - SLACK) <= largest[:, None]) & (x >= least[:, None])
        share = np.divide(x, self.rest + x, out=np.ones_like(x), where=self.rest + x > 0)
        paid = np.minimum(np.minimum(self.cap, self.rate * x), self.money * share)
        return np.asarray(np.where(inside, paid, 0.0).max(axis=1, initial=0.0))


class PiecesBounds:
    """Upper bounds of the true utility over boxes of (log privacy loss, log records).

    The loss is the whole reported budget. With `any_loss` it may be any part of it; what a loss
    below DUST of the smallest budget is paid is added to every bound.
    """

    def __init__(
        self, pieces: PaymentPieces, amount: Amount, owner: LyingOwner, any_loss: bool = False
    ) -> None:
        self.pieces, self.amount, self.owner = pieces, amount, owner
        self.low, self.high = owner.limits()
        self.slack = SLACK * owner.money
        if any_loss:
            self.low[0] += np.log(DUST)
            least = amount(np.exp(self.low[:1]), np.exp(self.high[1:]))
            self.slack += float(pieces.most(np.zeros(1), least)[0])

    def whole(self) -> tuple[Floats, Floats]:
        return self.low, self.high

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Upper bounds (B,) in boxes (B, 2), and influences (B, 2): what payment and cost change
        along each side."""
        (e0, d0), (e1, d1) = np.exp(low).T, np.exp(high).T
        largest, cheapest = self.amount(e1, d1), self.owner.cost(e0, d0)
        paid = self.pieces.most(self.amount(e0, d0), largest)
        bound = np.maximum(paid - cheapest, 0.0) + self.slack
        influence = [
            paid - self.pieces.most(np.zeros_like(e0), self.amount(*sides)) + cost - cheapest
            for sides, cost in (
                ((e0, d1), self.owner.cost(e1, d0)),
                ((e1, d0), self.owner.cost(e0, d1)),
            )
        ]
        return bound, np.maximum(np.stack(influence, axis=1), 0.0)
