"""The strategies of learners, and what they remember of each owner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.strategy.behaviours.behaviour import (
    BehaviourReports,
    CohortView,
    Feedback,
    Floats,
    Ints,
)
from flmarket_sim.strategy.behaviours.distortions import Factor, Part, distorted

Factors = Annotated[Sequence[Factor], Field(min_length=1)]
Parts = Annotated[Sequence[Part], Field(min_length=1)]
FACTORS = (0.5, 0.8, 1.0, 1.25, 1.6, 2.5)


class Grid:
    """Strategies: combinations of factors of the true values and shares of budget and records."""

    def __init__(
        self, factors: Sequence[float], privacy_budget: Sequence[float], data_size: Sequence[float]
    ) -> None:
        self.strategies: Floats = np.array(list(product(factors, privacy_budget, data_size)))

    def __len__(self) -> int:
        return len(self.strategies)

    def reports(self, view: CohortView, chosen: Ints) -> BehaviourReports:
        """The report of strategy chosen[i] for owner i."""
        return distorted(view, *self.strategies[chosen].T)


class OwnerRows:
    """`width` numbers for each owner that a learner has met; new owners have zeros."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.used = 0
        self.table: Floats = np.zeros((0, width))
        self._row: NDArray[np.int32] | None = None

    def rows(self, owners: Ints, population: int) -> Ints:
        """The rows of `table` with the owners' numbers."""
        if self._row is None:
            self._row = np.full(population, -1, np.int32)
        new = owners[self._row[owners] < 0]
        self._row[new] = np.arange(self.used, self.used + len(new))
        self.used += len(new)
        if self.used > len(self.table):
            more = np.zeros((max(self.used, 2 * len(self.table), 64), self.width))
            more[: len(self.table)] = self.table
            self.table = more
        return self._row[owners].astype(np.int64)

    def state(self) -> dict[str, NDArray[Any]]:
        known = np.zeros(0, np.int32) if self._row is None else self._row
        return {"table": self.table[: self.used], "row": known}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        table, row = state["table"], state["row"]
        if (
            table.shape != (len(table), self.width)
            or table.dtype != np.float64
            or not np.isfinite(table).all()
        ):
            raise ValueError(f"a learner's table is {table.dtype} {table.shape} or not finite")
        if (
            row.dtype != np.int32
            or row.ndim != 1
            or (len(row) and not -1 <= row.min() <= row.max() < len(table))
        ):
            raise ValueError(f"a learner's rows are {row.dtype} {row.shape} or lead nowhere")
        self.table, self.used = table, len(table)
        self._row = row if len(row) else None


def payoffs(feedback: Feedback) -> Floats:
    """(k,) utilities as shares of the true value of each owner's whole privacy budget, from -1 to
    1.

    An owner compares payoffs with her own only, so the scale of money does not matter.
    """
    worth = np.maximum(feedback.view.values[:, -1], 1e-300)
    return np.clip(feedback.utility / worth, -1.0, 1.0)


class PendingPayoffs:
    """Strategies whose payoffs are still to come, as the rounds of several buyers overlap."""

    def __init__(self) -> None:
        self._chosen: dict[tuple[int, int], Ints] = {}

    def keep(self, view: CohortView, chosen: Ints) -> None:
        self._chosen[view.buyer, view.round] = chosen

    def take(self, view: CohortView) -> Ints:
        return self._chosen.pop((view.buyer, view.round))


class GridLearner:
    """What learners on a grid share: a row of numbers for each owner, and choices under way."""

    def __init__(self, grid: Grid, width: int) -> None:
        self.grid, self.memory, self.pending = grid, OwnerRows(width), PendingPayoffs()

    def rows(self, view: CohortView) -> Ints:
        """The rows of the view's owners in the memory."""
        return self.memory.rows(view.owners, len(view.population))

    def play(self, view: CohortView, chosen: Ints) -> BehaviourReports:
        """The reports of the chosen strategies (k,), whose payoffs are pending now."""
        self.pending.keep(view, chosen)
        return self.grid.reports(view, chosen)

    def state(self) -> dict[str, Any]:
        return self.memory.state()

    def restore(self, state: dict[str, Any]) -> None:
        self.memory.restore(state)
