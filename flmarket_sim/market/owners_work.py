"""What the owners of a cohort compute on the records that they sell, before it is made private."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.local_training import owner_updates

if TYPE_CHECKING:
    from flmarket_sim.market.cohort import Cohort

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class OwnersWork:
    """Owners of a round who train at the parameters (D,) that they were sent.

    rows          training records, one owner after the other
    sizes         (n,) how many each sells
    participants  (n,) their numbers
    """

    cohort: Cohort
    parameters: Floats
    rows: Ints
    sizes: Ints
    participants: Ints

    def updates(self) -> Floats:
        """(n, D) what honest owners compute."""
        return self._computed(self.rows, self.sizes, self.participants, None)

    def updates_of(self, chosen: Ints, records: Ints | None, labels: Ints | None) -> Floats:
        """(k, D) what the owners at these places compute on a part of their records.

        Owner i takes records[i] of them, evenly over all, because records may be in the order of
        their classes. `labels` (classes,) is the class that she takes each class for.
        """
        begin = np.cumsum(self.sizes) - self.sizes
        sizes = self.sizes[chosen] if records is None else records
        places = [
            first + (np.arange(part) * whole) // part
            for first, whole, part in zip(begin[chosen], self.sizes[chosen], sizes, strict=True)
        ]
        rows = self.rows[np.concatenate(places)]
        return self._computed(rows, sizes, self.participants[chosen], labels)

    def _computed(self, rows: Ints, sizes: Ints, participants: Ints, labels: Ints | None) -> Floats:
        world = self.cohort.world
        assert world.data is not None
        return owner_updates(
            self.cohort.model,
            world.scenario.learning,
            self.parameters,
            world.data if labels is None else _relabelled(world.data, labels),
            rows,
            sizes,
            world.streams,
            participants,
            self.cohort.round,
            self.cohort.buyer,
        )


def _relabelled(data: Dataset, labels: Ints) -> Dataset:
    """The same records with other classes; the test records stay."""
    return replace(data, train_y=labels[data.train_y].astype(data.train_y.dtype))
