"""What a buyer owes, from the delivery until her money has reached the broker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.mail import Letter

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bill:
    """To be paid by a buyer for a round: `amounts` (g,) go to the participants `names` (g,), who are `people` (g,)."""

    buyer: int
    round: int
    names: Ints
    people: Ints
    amounts: Floats
    payment: Letter
