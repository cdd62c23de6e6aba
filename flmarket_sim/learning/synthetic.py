"""Synthetic data of any size: one Gaussian cloud a class."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import expit

from flmarket_sim.errors import InputError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.partitions import whole_shares
from flmarket_sim.randomness import Purpose, Streams

MOST = 10**12  # records: shares of more would not be exact, and no machine has the memory


class Synthetic:
    """Gaussian classes, of any number of records, features and classes.

    The frequency of class c is proportional to (c + 1)^-skew. Class centres lie on a sphere of
    radius `separation` around 0. Records have standard deviation 1 around them in each feature,
    and a logistic curve maps each feature to [0, 1].
    """

    name = "synthetic"

    def __init__(
        self,
        records: Annotated[int, Field(ge=2, le=MOST)] = 20_000,
        features: Annotated[int, Field(ge=1)] = 20,
        classes: Annotated[int, Field(ge=2)] = 4,
        skew: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0,
        separation: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 2.0,
        test_records: Annotated[int, Field(ge=1, le=MOST)] = 2_000,
    ) -> None:
        if records < classes:
            raise InputError(f"synthetic data: {records} records are fewer than {classes} classes")
        self.records, self.features, self.classes = records, features, classes
        self.skew, self.separation, self.test_records = skew, separation, test_records

    def shape(self) -> tuple[int, int]:
        return self.features, self.classes

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return 1 + whole_shares(self._frequencies(), self.records - self.classes)

    def load(self, streams: Streams) -> Dataset:
        rng = streams.generator(Purpose.DATA)
        centres = rng.normal(size=(self.classes, self.features))
        centres *= self.separation / np.linalg.norm(centres, axis=1, keepdims=True)
        frequencies = self._frequencies()
        train_y = np.repeat(np.arange(self.classes), self.class_counts(streams))
        test_y = rng.choice(self.classes, self.test_records, p=frequencies / frequencies.sum())
        parts = []
        for labels in (train_y, test_y):
            x = rng.standard_normal((len(labels), self.features), dtype=np.float32)
            for label, centre in enumerate(centres.astype(np.float32)):
                x[labels == label] += centre
            parts.append(expit(x, out=x))
        names = tuple(f"class {label}" for label in range(self.classes))
        return Dataset(parts[0], train_y.astype(np.int64), parts[1], test_y.astype(np.int64), names)

    def _frequencies(self) -> NDArray[np.float64]:
        return np.asarray(np.arange(1.0, self.classes + 1.0) ** -self.skew)
