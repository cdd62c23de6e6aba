"""How gradients leave their owners: clipped together, perturbed one by one.

This is the only way out of the market, and the audit of the noise uses it too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.privacy.clipping import clip_l1
from flmarket_sim.privacy.noise import Noise

Floats = NDArray[np.float64]


class Release:
    """The gradients (n, D) of n owners, clipped to L in L1; `norms` (n,) are the norms before.

    `raw` is clipped in place, so the caller must not use it afterwards.
    """

    def __init__(self, raw: Floats, privacy_loss: list[float], clip: float, noise: Noise) -> None:
        self.clipped, self.norms = clip_l1(raw, clip, in_place=True)
        self.privacy_loss, self.noise = privacy_loss, noise

    def leave(self, row: int, owner: int, round_number: int, buyer: int) -> Floats:
        """(D,) a row with its owner's noise: the only form in which others see it."""
        return self.noise.add(self.clipped[row], self.privacy_loss[row], owner, round_number, buyer)
