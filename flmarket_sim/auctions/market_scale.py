"""Markets of any size in numbers near one, for the auctions that rank owners.

These auctions depend on ratios alone: of amounts to each other, and of values to the budget. Both
are divided by powers of two, which changes no bit of a quotient, a product or a sum. So a market
of 1e-300 is decided as one of 1, and nothing overflows on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
NEGLIGIBLE = 2.0**-1000  # of the largest amount: beside it such a sale counts as nothing


@dataclass(frozen=True)
class InScale:
    """Values and amounts (K, n) and budgets (K,), with the largest amount and the budget near one.

    An owner with a negligible amount asks for an infinite value, so she wins nothing.
    """

    value: Floats
    amount: Floats
    budget: Floats
    exponent: Ints  # (K,) of the money

    @classmethod
    def of(cls, value: Floats, amount: Floats, budget: Floats) -> InScale:
        _, size = np.frexp(amount.max(axis=1))
        _, money = np.frexp(budget)
        with np.errstate(over="ignore"):  # a value that is infinite beside the budget wins nothing
            amount = np.ldexp(amount, -size[:, None])
            value = np.ldexp(value, -money[:, None])
        small = amount < NEGLIGIBLE
        return cls(np.where(small, np.inf, value), amount, np.ldexp(budget, -money), money)

    def in_money(self, payment: Floats) -> Floats:
        """Payments (K, n) in the money of the market."""
        return np.asarray(np.ldexp(payment, self.exponent[:, None]))
