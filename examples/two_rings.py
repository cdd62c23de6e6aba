"""A data set: points on two noisy rings, held by owners who each watch one direction.

    flmarket run quickstart --set data.name=examples/two_rings.py:TwoRings

docs/writing-a-dataset.md explains the contract.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim import Dataset
from flmarket_sim.randomness import Purpose, Streams


class TwoRings:
    """Points on an inner and an outer ring: three features, two classes."""

    name = "two-rings"

    def __init__(
        self,
        records: Annotated[int, Field(ge=40)] = 4_000,
        noise: Annotated[float, Field(ge=0, le=1)] = 0.1,
        watchers: Annotated[int, Field(ge=1)] = 20,
    ) -> None:
        self.records, self.noise, self.watchers = records, noise, watchers

    def shape(self) -> tuple[int, int]:
        """Features and classes, known without the data."""
        return 3, 2

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        """Training records of each class, also known without the data."""
        return np.array([self.records - self.records // 2, self.records // 2])

    def owner_counts(self, streams: Streams) -> NDArray[np.int64]:
        """(owners, classes) training records; the partition "given" needs it."""
        return self.load(streams).owner_counts()

    def load(self, streams: Streams) -> Dataset:
        """The same data for the same seed: all randomness comes from one stream."""
        rng = streams.generator(Purpose.DATA)
        train_x, train_y, angle = self._points(rng, self.records)
        test_x, test_y, _ = self._points(rng, self.records // 4)
        sector = (angle * self.watchers).astype(np.int64)
        sector[: self.watchers] = np.arange(self.watchers)  # each of them has seen something
        names = tuple(f"watcher {i + 1}" for i in range(self.watchers))
        return Dataset(train_x, train_y, test_x, test_y, ("inner", "outer"), sector, names)

    def _points(
        self, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float64]]:
        label = np.arange(count) % 2
        radius = 0.5 + 0.4 * label + self.noise * rng.normal(size=count)
        angle = rng.random(count)
        x, y = radius * np.cos(2 * np.pi * angle), radius * np.sin(2 * np.pi * angle)
        features = np.column_stack([(x + 1) / 2, (y + 1) / 2, x * x + y * y])
        return np.clip(features, 0, 1).astype(np.float32), label.astype(np.int64), angle
