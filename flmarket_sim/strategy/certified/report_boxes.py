"""Boxes of reports as a network sees them: logs of values at its levels, of budget and records."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, stacked
from flmarket_sim.strategy.certified.lying_owner import LyingOwner

Floats = NDArray[np.float64]


class ReportBoxes:
    """The coordinates of one owner's reports: J log values, log privacy budget, log records.

    A table has L reported levels, and a network reads it at M levels of its own, straight between
    reports. Only the J reported levels that it reads are coordinates. `weights` (J, M) leads from
    them to the network's levels.
    """

    def __init__(self, owner: LyingOwner, levels: int) -> None:
        every = reading_weights(owner.bids.levels, levels)
        read = np.flatnonzero(every.any(axis=1))
        self.owner, self.weights = owner, every[read]
        self.values = len(read)
        self.share = np.arange(1, levels + 1) / levels

    def whole(self, least: Floats, most: Floats) -> tuple[Floats, Floats]:
        """The box of all reports, with log values between `least` and `most` (J,)."""
        low, high = self.owner.limits()
        return np.concatenate([least, low]), np.concatenate([most, high])

    def rising(self, low: Floats, high: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Boxes (B, D) without the tables that fall, and which of them have any tables left."""
        low, high, J = low.copy(), high.copy(), self.values
        low[:, :J] = np.maximum.accumulate(low[:, :J], axis=1)
        high[:, :J] = np.minimum.accumulate(high[:, :J][:, ::-1], axis=1)[:, ::-1]
        exist = np.asarray((low[:, :J] <= high[:, :J]).all(axis=1))
        low[:, :J] = np.minimum(low[:, :J], high[:, :J])
        return low, high, exist

    def log_values(self, coordinates: Enclosed) -> Enclosed:
        """(B, M) logs of the values at the network's levels."""
        columns = []
        for m in range(self.weights.shape[1]):
            used = np.flatnonzero(self.weights[:, m])
            logs = torch.from_numpy(np.log(self.weights[used, m]))
            part = coordinates.at(torch.from_numpy(used)) + logs
            columns.append(part.at(0) if len(used) == 1 else part.log_sum_exp())
        return stacked(columns)

    def log_cost(self, low: Floats, high: Floats) -> Enclosed:
        """(B, M) a linear function below the log of the true cost of each level."""
        J = self.values
        center, slope = self.owner.log_cost_from_below(low[:, J:], high[:, J:], self.share)
        slopes = np.concatenate([np.zeros((len(low), J, len(self.share))), slope], axis=1)
        middle = torch.from_numpy(center)
        return Enclosed(middle, torch.from_numpy(slopes), torch.zeros_like(middle))

    def least_cost(self, low: Floats) -> Tensor:
        """(B, M) the true cost of each level at the smallest budget and fewest records."""
        J = self.values
        loss = np.exp(low[:, J : J + 1]) * self.share
        size = np.broadcast_to(np.exp(low[:, J + 1 :]), loss.shape)
        return torch.from_numpy(self.owner.cost(loss, size))


def reading_weights(reported: int, levels: int) -> Floats:
    """(reported, levels) what each reported value adds to the value at each level of a network."""
    steps = np.triu(np.ones((reported, reported)))
    read = BidBatch(steps[None], np.ones((1, reported)), np.ones((1, reported))).at_levels(levels)
    weights = -np.diff(read[0], axis=0, append=0.0)
    return np.where(np.abs(weights) > 1e-12, weights, 0.0)


def small_influence(first: Tensor, low: Floats, high: Floats) -> Tensor:
    """(B, D) which coordinate to halve where the slopes of the result say nothing, because it is a
    plain interval: the widest, and rather one that moves the first layer, whose slopes are given.
    """
    share = first / first.amax(1, keepdim=True).clamp(min=1e-12)
    return 1e-6 * torch.from_numpy(high - low) * (1 + share)
