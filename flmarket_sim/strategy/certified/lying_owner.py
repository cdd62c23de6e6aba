"""One owner who may lie while all others tell the truth: her limits, and what sales cost her."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.valuation import marginal_value
from flmarket_sim.strategy.misreports import LEAST_SHARE, Floats

LEAST_COST = 1e-290


@dataclass(frozen=True)
class LyingOwner:
    """Owner `index` of one market, whose truthful bids are `bids` (1, n).

    Her reports are those of the probe: a privacy budget from LEAST_SHARE of her own to her own, at
    least one record and at most hers (exactly hers if sizes are certified), and any values.
    """

    index: int
    types: OwnerTypes
    bids: BidBatch
    money: float
    size_certified: bool

    @classmethod
    def of(
        cls, truth: Profiles, bids: BidBatch, budget: Floats, k: int, i: int, size_certified: bool
    ) -> LyingOwner:
        market = bids.take(slice(k, k + 1))
        return cls(i, truth.types.at((k, i)), market, float(budget[k]), size_certified)

    @property
    def others(self) -> Floats:
        """(n - 1,) columns of all others."""
        return np.delete(np.arange(self.bids.shape[1]), self.index)

    def limits(self) -> tuple[Floats, Floats]:
        """(2,) the least and the largest (log privacy budget, log records) that she can report."""
        budget, size = float(self.types.privacy_budget), float(self.types.data_size)
        least = size if self.size_certified else 1.0
        return np.log([LEAST_SHARE * budget, least]), np.log([budget, size])

    def cost(self, privacy_loss: Floats, data_size: Floats) -> Floats:
        """What sales truly cost her; she sells something."""
        loss = np.maximum(privacy_loss, LEAST_COST)
        return self._types_like(loss).value(loss, data_size)

    def log_cost_from_below(
        self, low: Floats, high: Floats, share: Floats
    ) -> tuple[Floats, Floats]:
        """A linear function below the log of her cost in boxes of (log budget, log records).

        low and high (B, 2); share (M,) of the reported budget that is sold. Returns its value at
        the centers (B, M) and its slopes (B, 2, M) along the two half-widths. The log cost of the
        paper's families is convex in these coordinates, so a tangent lies below it. Of any other
        family only that it rises is used.
        """
        if int(self.types.family) >= len(FAMILIES):
            loss, size = np.exp(low[:, :1]) * share, np.exp(low[:, 1:])
            value = np.log(np.maximum(self.cost(loss, size), LEAST_COST))
            return value, np.zeros((len(low), 2, len(share)))
        middle, half = (low + high) / 2, (high - low) / 2
        loss, size = np.broadcast_arrays(np.exp(middle[:, :1]) * share, np.exp(middle[:, 1:]))
        types, cost = self._types_like(loss), self.cost(loss, size)
        elasticity = loss * marginal_value(types.family, types.rate, size, loss) / cost
        moves = 0.0 if FAMILIES[int(self.types.family)] == "step" else 1.0
        slope = np.stack([elasticity * half[:, :1], moves * half[:, 1:] + 0 * elasticity], axis=1)
        return np.log(cost), slope

    def _types_like(self, loss: Floats) -> OwnerTypes:
        columns: Any = (np.broadcast_to(column, loss.shape) for column in self.types)
        return OwnerTypes(*columns)
