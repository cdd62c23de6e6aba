"""UCI Bank Marketing (Moro et al. 2014): does a client subscribe to a deposit?"""

from __future__ import annotations

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import DataFile
from flmarket_sim.learning.dataset import Dataset, stratified_split, unit_scaled
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.randomness import Streams
from flmarket_sim.storage.arrow_memory import arrow_reader

NUMERIC = ("age", "balance", "day", "duration", "campaign", "pdays", "previous")
CATEGORICAL = (
    "job",
    "marital",
    "education",
    "default",
    "housing",
    "loan",
    "contact",
    "month",
    "poutcome",
)
TRAIN_COUNTS = (31938, 4232)  # of 39,922 and 5,289


class Bank:
    """UCI Bank Marketing: 45,211 clients, 51 features, 2 classes; a fifth of each class to test."""

    name = "bank"
    folder = "bank"
    files = (
        DataFile(
            "bank-full.csv",
            "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            "https://archive.ics.uci.edu/static/public/222/bank+marketing.zip",
            ("bank.zip", "bank-full.csv"),
            size=4_610_348,
        ),
    )

    def shape(self) -> tuple[int, int]:
        return 51, len(TRAIN_COUNTS)

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.array(TRAIN_COUNTS)

    def load(self, streams: Streams) -> Dataset:
        path = data_files.require(self.name, self.folder, self.files[0])
        return cached(self.name, 1, [path], lambda: features(data_files.read(path, self.files[0])))


def features(text: bytes) -> Dataset:
    """Categorical fields one-hot, the others scaled to [0, 1] by the training records."""
    table = pyarrow.csv.read_csv(
        arrow_reader(text), parse_options=pyarrow.csv.ParseOptions(delimiter=";")
    )
    labels = (table.column("y").to_numpy(zero_copy_only=False).astype(str) == "yes").astype(
        np.int64
    )
    train, test = stratified_split(labels)
    numeric = np.column_stack([table.column(name).to_numpy() for name in NUMERIC]).astype(float)
    hot = []
    for name in CATEGORICAL:
        values = table.column(name).to_numpy(zero_copy_only=False).astype(str)
        hot.append(values[:, None] == np.unique(values))
    flags = np.concatenate(hot, axis=1).astype(np.float32)
    train_numeric, test_numeric = unit_scaled(numeric[train], numeric[test])
    return Dataset(
        np.concatenate([train_numeric, flags[train]], axis=1),
        labels[train],
        np.concatenate([test_numeric, flags[test]], axis=1),
        labels[test],
        ("no", "yes"),
    )
