"""Sales at posted ratios, one owner after the other, while the money lasts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def sell_in_turn(
    value: Floats, amount: Floats, posted: Floats, money: Floats, order: Ints
) -> tuple[Bools, Floats]:
    """(K, n) who sells, and payments.

    The owner whose turn it is gets one offer for her whole sale: her posted ratio times her amount,
    or the money that is left if that is less. She sells if she asks for no more. `order` (K, n) has
    the owners in the order of their turns. All of `value`, `amount` and `posted` are (K, n), and
    `money` is (K,); an infinite `value` takes an owner out.

    Neither the money that is left nor the order depends on the report of an owner who has not had
    her turn. So where her posted ratio does not depend on it either, her offer depends on her
    report by her amount alone, and it does not fall when the amount rises.
    """
    pick = np.take_along_axis
    with np.errstate(over="ignore"):
        ready = pick(value / amount <= posted, order, 1)
    asked = pick(value, order, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        offer = np.maximum(pick(posted * amount, order, 1), asked)  # a unit ratio is rounded
    left = money.astype(np.float64)
    sells, payment = np.zeros(value.shape, np.bool_), np.zeros(value.shape)
    for turn in range(value.shape[1]):
        now = ready[:, turn] & (asked[:, turn] <= left)
        paid = np.where(now, np.minimum(offer[:, turn], left), 0.0)
        sells[:, turn], payment[:, turn] = now, paid
        left = left - paid
    owners, paid_to = np.empty_like(sells), np.empty_like(payment)
    np.put_along_axis(owners, order, sells, axis=1)
    np.put_along_axis(paid_to, order, payment, axis=1)
    return owners, paid_to
