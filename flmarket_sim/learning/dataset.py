"""The contract of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario

Features = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    """Features in [0, 1] (records, features) and class numbers (records,), to train and to test."""

    train_x: Features
    train_y: Labels
    test_x: Features
    test_y: Labels
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        return (
            f"<Dataset of {len(self.train_y):,} + {len(self.test_y):,} records with "
            f"{np.shape(self.train_x)[-1]:,} features, {len(self.classes)} classes>"
        )

    def check(self) -> Dataset:
        """Refuses data that no model can learn from. It takes one pass over all records."""
        for part, x, y in (
            ("train", self.train_x, self.train_y),
            ("test", self.test_x, self.test_y),
        ):
            if (
                getattr(x, "ndim", 0) != 2
                or getattr(y, "ndim", 0) != 1
                or len(x) != len(y)
                or not len(y)
            ):
                shapes = f"{np.shape(x)} and {np.shape(y)}"
                raise InputError(
                    f"data: {part}_x and {part}_y must have shapes (records, features) and "
                    f"(records,), got {shapes}"
                )
            if not np.issubdtype(y.dtype, np.integer) or not np.issubdtype(x.dtype, np.floating):
                raise InputError(
                    f"data: {part}_x must be floats and {part}_y whole numbers, "
                    f"got {x.dtype} and {y.dtype}"
                )
            if y.min() < 0 or y.max() >= len(self.classes):
                row = int(np.flatnonzero((y < 0) | (y >= len(self.classes)))[0])
                raise InputError(
                    f"data: {part}_y[{row}] is {y[row]}; "
                    f"labels must lie in 0..{len(self.classes) - 1}"
                )
            if not np.isfinite(x.sum(dtype=np.float64)):
                row, column = np.argwhere(~np.isfinite(x))[0]
                raise InputError(
                    f"data: {part}_x[{row}, {column}] is {x[row, column]}; features must be finite"
                )
        if self.train_x.shape[1] != self.test_x.shape[1] or not self.train_x.shape[1]:
            raise InputError(
                f"data: train_x has {self.train_x.shape[1]} features "
                f"and test_x {self.test_x.shape[1]}"
            )
        return self


class DatasetSource(Protocol):
    """A data set by name. `class_counts` works without the data where the numbers are known."""

    name: str

    def class_counts(self, streams: Streams) -> NDArray[np.int64]: ...

    def load(self, streams: Streams) -> Dataset: ...


@runtime_checkable
class KnownShape(Protocol):
    """An optional ability of a data set: its shape is known without its data."""

    def shape(self) -> tuple[int, int]:
        """The number of features and the number of classes."""
        ...


def load_data(scenario: Scenario) -> Dataset:
    """The data set that a scenario names, as every run of the scenario loads it."""
    source = registry.datasets.create(scenario.data.name, **scenario.data.options)
    data: Dataset = source.load(Streams(scenario.seed))
    return data


def stratified_split(
    labels: Labels, test_share: float = 0.2
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows for training and for test, the same share of every class, the same for every seed."""
    rng = np.random.default_rng(20220101)
    train, test = [], []
    for label in range(int(labels.max()) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        cut = len(members) - int(len(members) * test_share)
        train.append(members[:cut])
        test.append(members[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def unit_scaled(train: NDArray[np.float64], test: NDArray[np.float64]) -> tuple[Features, Features]:
    """Columns scaled to [0, 1] by the range of the training records, to which test is clipped."""
    low, high = train.min(axis=0), train.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    scale = [np.clip((x - low) / width, 0.0, 1.0).astype(np.float32) for x in (train, test)]
    return scale[0], scale[1]
