"""The privacy ledger: what every owner has sold over all rounds and buyers.

Privacy losses depend on earlier outcomes, so plain sums are the valid account (adaptive composition, THEORY section 5). A loss
counts from the moment a gradient leaves its owner, paid or not. A promise (accepted, not yet sent) is reserved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Ledger:
    """Columns over all owners: `sold` privacy loss, `reserved` privacy loss, `gradients` sent, money `earned`."""

    def __init__(self, owners: int, lifetime_budget: float | None) -> None:
        self.lifetime_budget = np.inf if lifetime_budget is None else lifetime_budget
        self.sold = np.zeros(owners)
        self.reserved = np.zeros(owners)
        self.gradients = np.zeros(owners, np.int64)
        self.earned = np.zeros(owners)

    @property
    def limited(self) -> bool:
        return bool(np.isfinite(self.lifetime_budget))

    def remaining(self, owners: Ints) -> Floats:
        """What these owners may still promise."""
        return np.maximum(self.lifetime_budget - self.sold[owners] - self.reserved[owners], 0.0)

    def reserve(self, owner: int, privacy_loss: float) -> bool:
        """Sets a promise aside; False if it would not fit into the lifetime budget."""
        total = self.sold[owner] + self.reserved[owner] + privacy_loss
        if total > self.lifetime_budget * (1 + 1e-12):
            return False
        self.reserved[owner] += privacy_loss
        return True

    def release(self, owner: int, privacy_loss: float) -> None:
        """A promise that came to nothing."""
        self.reserved[owner] = max(self.reserved[owner] - privacy_loss, 0.0)

    def spend(self, owner: int, privacy_loss: float) -> None:
        """A gradient left its owner."""
        self.release(owner, privacy_loss)
        self.sold[owner] += privacy_loss
        self.gradients[owner] += 1

    def earn(self, owners: Ints, amounts: Floats) -> None:
        np.add.at(self.earned, owners, amounts)
