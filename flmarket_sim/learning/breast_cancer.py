"""Breast cancer of Wisconsin (Street, Wolberg and Mangasarian 1993): is a tumour malignant?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import DataError
from flmarket_sim.learning.dataset import Dataset, stratified_split, unit_scaled
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.randomness import Streams

TRAIN_COUNTS = (170, 286)  # of 212 and 357


class BreastCancer:
    """Breast cancer of Wisconsin: 569 tumours, 30 features, 2 classes; ships with scikit-learn."""

    name = "breast-cancer"

    def shape(self) -> tuple[int, int]:
        return 30, len(TRAIN_COUNTS)

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.array(TRAIN_COUNTS)

    def load(self, streams: Streams) -> Dataset:
        package = find_spec("sklearn")
        if package is None or package.origin is None:
            raise DataError(
                "data set 'breast-cancer' ships with scikit-learn, which is not installed"
            )
        return cached(self.name, 1, [Path(package.origin)], features)


def features() -> Dataset:
    """Measures of cell nuclei, scaled to [0, 1] by the training records."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    y = bunch.target.astype(np.int64)
    train, test = stratified_split(y)
    x = unit_scaled(bunch.data[train], bunch.data[test])
    return Dataset(x[0], y[train], x[1], y[test], tuple(map(str, bunch.target_names)))
