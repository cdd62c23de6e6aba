"""The default data set: the digits of scikit-learn, 1797 images of 8 x 8 pixels, ten classes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import DataError
from flmarket_sim.learning.dataset import Dataset, stratified_split
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.randomness import Streams


class Digits:
    """Hand-written digits, 64 features, 10 classes; ships with scikit-learn."""

    name = "digits"

    def shape(self) -> tuple[int, int]:
        return 64, 10

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.bincount(self.load(streams).train_y)

    def load(self, streams: Streams) -> Dataset:
        package = find_spec("sklearn")
        if package is None or package.origin is None:
            raise DataError("data set 'digits' ships with scikit-learn, which is not installed")
        return cached(self.name, 1, [Path(package.origin)], features)


def features() -> Dataset:
    """Grey values scaled to [0, 1]. Importing scikit-learn takes a second, hence the cache."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    x, y = (pixels / 16.0).astype(np.float32), labels.astype(np.int64)
    train, test = stratified_split(y)
    return Dataset(x[train], y[train], x[test], y[test], tuple(str(digit) for digit in range(10)))
