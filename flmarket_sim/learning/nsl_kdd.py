"""NSL-KDD (Tavallaee et al. 2009): network connections with 41 fields, in five classes."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from flmarket_sim.errors import DataError
from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import DataFile
from flmarket_sim.learning.dataset import Dataset, unit_scaled
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.randomness import Streams
from flmarket_sim.storage.arrow_memory import arrow_reader

CLASSES = ("normal", "dos", "probe", "r2l", "u2r")
TRAIN_COUNTS = (67343, 45927, 11656, 995, 52)
CATEGORICAL = (1, 2, 3)  # protocol, service, flag
LABEL = 41
ATTACKS = {
    "dos": "back land neptune pod smurf teardrop apache2 udpstorm processtable mailbomb worm",
    "probe": "satan ipsweep nmap portsweep mscan saint",
    "r2l": "guess_passwd ftp_write imap phf multihop warezmaster warezclient spy xlock xsnoop "
    "snmpguess snmpgetattack httptunnel sendmail named",
    "u2r": "buffer_overflow loadmodule rootkit perl sqlattack xterm ps",
}
_BASE = "https://raw.githubusercontent.com/defcom17/NSL_KDD/master/"


class NslKdd:
    """NSL-KDD intrusion detection: 125,973 + 22,544 records, 122 features, 5 classes."""

    name = "nsl-kdd"
    folder = "nslkdd"
    files = (
        DataFile(
            "KDDTrain+.txt",
            "1b86d2f957b33082081bba410fe129b475efebcc13c9014c3f447c8271aadf95",
            _BASE + "KDDTrain%2B.txt",
            size=19_109_424,
        ),
        DataFile(
            "KDDTest+.txt",
            "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84",
            _BASE + "KDDTest%2B.txt",
            size=3_441_513,
        ),
    )

    def shape(self) -> tuple[int, int]:
        return 122, len(CLASSES)

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.array(TRAIN_COUNTS)

    def load(self, streams: Streams) -> Dataset:
        paths = [data_files.require(self.name, self.folder, file) for file in self.files]
        return cached(
            self.name,
            1,
            paths,
            lambda: features(
                *(data_files.read(p, f) for p, f in zip(paths, self.files, strict=True))
            ),
        )


def features(train: bytes, test: bytes) -> Dataset:
    """Fields scaled to [0, 1]; categorical ones one-hot, by the values of the training file."""
    tables = [read_table(train), read_table(test)]
    numeric = [
        np.column_stack(
            [table.column(i).to_numpy() for i in range(LABEL) if i not in CATEGORICAL]
        ).astype(float)
        for table in tables
    ]
    scaled = unit_scaled(numeric[0], numeric[1])
    known = [
        np.unique(tables[0].column(i).to_numpy(zero_copy_only=False).astype(str))
        for i in CATEGORICAL
    ]
    x, y = [], []
    for table, columns in zip(tables, scaled, strict=True):
        hot = [
            table.column(i).to_numpy(zero_copy_only=False).astype(str)[:, None] == values
            for i, values in zip(CATEGORICAL, known, strict=True)
        ]
        x.append(np.concatenate([columns, *hot], axis=1).astype(np.float32))
        y.append(classes(table.column(LABEL).to_numpy(zero_copy_only=False).astype(str)))
    return Dataset(x[0], y[0], x[1], y[1], CLASSES)


def read_table(text: bytes) -> pyarrow.Table:
    """A CSV text without a header."""
    options = pyarrow.csv.ReadOptions(autogenerate_column_names=True)
    return pyarrow.csv.read_csv(arrow_reader(text), read_options=options)


def classes(labels: NDArray[np.str_]) -> NDArray[np.int64]:
    """The number of the family of each attack name; some names occur in the test file only."""
    number = {"normal": 0}
    for family, attacks in ATTACKS.items():
        number.update(dict.fromkeys(attacks.split(), CLASSES.index(family)))
    names, inverse = np.unique(labels, return_inverse=True)
    unknown = [str(name) for name in names if str(name) not in number]
    if unknown:
        raise DataError(f"NSL-KDD: unknown labels {', '.join(unknown)}")
    return np.array([number[str(name)] for name in names], dtype=np.int64)[inverse]
