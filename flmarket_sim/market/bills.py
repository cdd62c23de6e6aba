"""What a buyer owes, from the delivery until her money reaches the broker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.mail import Letter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bill:
    """A buyer's debt for a round.

    The participants `names` (g,) get `amounts` (g,); `people` (g,) are the owners behind the names.
    `payment` is the letter that brings the money.
    """

    buyer: int
    round: int
    names: Ints
    people: Ints
    amounts: Floats
    payment: Letter
