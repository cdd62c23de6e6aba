"""The privacy ledger: what every owner has sold over all rounds and buyers.

Privacy losses depend on earlier outcomes, so plain sums are the valid account (adaptive
composition; docs/theory.md, section 5). A loss counts from the moment a gradient leaves its owner,
paid or not. A promise (accepted, not yet sent) is reserved.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
WITHIN = 1 + 1e-12  # times a lifetime budget: a sum above this is more than the owner has


class Ledger:
    """Columns over all owners: privacy loss `sold` and `reserved`, `gradients` sent, money.

    `earned` is the money from buyers. `transferred` is what an owner got from other owners outside
    the market, less what she gave them. `settle` adds the latest sales to the columns. `delta` is
    that of the promise with which every gradient of the market is sold; 0 if it is pure.

    `watched` says whether the market has cheats or a check. Then `lost` is what records truly lost,
    which is less than `sold` for some cheats, `forfeited` the deposits that went to buyers, `cost`
    what her messages truly cost an owner, in time or not, and `judged` and `accused` count those
    that the broker looked at.
    """

    def __init__(
        self, owners: int, lifetime_budget: float | None, delta: float = 0.0, watched: bool = False
    ) -> None:
        self.watched = watched
        self.delta = delta
        self.limited = lifetime_budget is not None
        self.lifetime_budget = np.inf if lifetime_budget is None else lifetime_budget
        self.sold = np.zeros(owners)
        self.reserved = np.zeros(owners)
        self.gradients = np.zeros(owners, np.int64)
        self.earned = np.zeros(owners)
        self.transferred = np.zeros(owners)
        self.lost = np.zeros(owners)
        self.forfeited = np.zeros(owners)
        self.cost = np.zeros(owners)
        self.judged = np.zeros(owners, np.int64)
        self.accused = np.zeros(owners, np.int64)
        self._sales: list[tuple[int, float, float, float]] = []

    @property
    def delta_sold(self) -> Floats:
        """The sum of the deltas of each owner's gradients: (sum of e, sum of delta) is valid."""
        return np.asarray(self.gradients * self.delta, np.float64)

    def remaining(self, owners: Ints) -> Floats:
        """The privacy loss that each of these owners may still promise."""
        self.settle()
        return np.maximum(self.lifetime_budget - self.sold[owners] - self.reserved[owners], 0.0)

    def reserve(self, owner: int, privacy_loss: float) -> bool:
        """Reserves a promised loss; False if it does not fit into the lifetime budget."""
        self.settle()
        total = self.sold[owner] + self.reserved[owner] + privacy_loss
        if total > self.lifetime_budget * WITHIN:
            return False
        self.reserved[owner] += privacy_loss
        return True

    def release(self, owner: int, privacy_loss: float) -> None:
        """Cancels a promise that was not kept."""
        if self.limited:
            self.reserved[owner] = max(self.reserved[owner] - privacy_loss, 0.0)

    def spend(
        self, owner: int, privacy_loss: float, lost: float | None = None, cost: float = 0.0
    ) -> None:
        """Books the loss of a gradient that left its owner; `lost` where that is another one, and
        what it truly cost her."""
        self._sales.append((owner, privacy_loss, privacy_loss if lost is None else lost, cost))
        if self.limited:
            self.release(owner, privacy_loss)

    def earn(self, owners: Ints, amounts: Floats) -> None:
        np.add.at(self.earned, owners, amounts)

    def forfeit(self, owners: Ints, amounts: Floats) -> None:
        np.add.at(self.forfeited, owners, amounts)

    def verdicts(self, owners: Ints, accused: NDArray[np.bool_]) -> None:
        np.add.at(self.judged, owners, 1)
        np.add.at(self.accused, owners, accused.astype(np.int64))

    def utility(self) -> Floats:
        """(N,) money from buyers less lost deposits and true costs; known where it is watched."""
        return self.earned - self.forfeited - self.cost

    def transfer(self, payers: Ints, payees: Ints, amounts: Floats) -> None:
        np.subtract.at(self.transferred, payers, amounts)
        np.add.at(self.transferred, payees, amounts)

    def settle(self) -> None:
        """Adds the latest sales to the columns."""
        if self._sales:
            columns = zip(*self._sales, strict=True)
            owners, losses, lost, costs = (np.array(column) for column in columns)
            np.add.at(self.sold, owners, losses)
            np.add.at(self.lost, owners, lost)
            np.add.at(self.cost, owners, costs)
            np.add.at(self.gradients, owners, 1)
            self._sales = []


class JointAccount:
    """The account of an owner with several names in one round. It replaces the ledger for her
    names.

    Each name sells records of its own, so no record loses more than the largest loss sold under any
    of the names. That is what the round costs her.
    """

    def __init__(self, ledger: Ledger, person: int) -> None:
        self.ledger, self.person, self.limited = ledger, person, ledger.limited
        self.promised: dict[int, float] = {}
        self.sent = self.lost = 0.0

    def reserve(self, name: int, privacy_loss: float) -> bool:
        more = max(privacy_loss - max(self.sent, *self.promised.values(), 0.0), 0.0)
        if not self.ledger.reserve(self.person, more):
            return False
        self.promised[name] = privacy_loss
        return True

    def release(self, name: int, privacy_loss: float) -> None:
        self.promised.pop(name, None)
        rest = max(self.sent, *self.promised.values(), 0.0)
        self.ledger.release(self.person, max(privacy_loss - rest, 0.0))

    def spend(
        self, name: int, privacy_loss: float, lost: float | None = None, cost: float = 0.0
    ) -> None:
        """Books a gradient that left her: a promise becomes a sale."""
        more = max(privacy_loss - self.sent, 0.0)
        more_lost = max((privacy_loss if lost is None else lost) - self.lost, 0.0)
        self.promised.pop(name, None)
        self.sent += more
        self.lost += more_lost
        self.ledger.spend(self.person, more, more_lost, cost)
