"""Census tables: records of people as texts and numbers, with training and test files of their own.

Adult and Census-Income are prepared in the same way, from header-less CSV texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.learning import data_files
from flmarket_sim.learning.data_files import KnownFile
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.feature_cache import cached
from flmarket_sim.learning.preparation import Preparation, prepare
from flmarket_sim.learning.record_files import CsvDialect, parse_csv
from flmarket_sim.learning.records import Records, Roles, records_of_table
from flmarket_sim.randomness import Streams

DIALECT = CsvDialect(header=False, missing=())  # "?" is an answer too


@dataclass(frozen=True)
class CensusTable:
    """The columns of a census.

    columns     all columns of the files, in order; the last is the label
    numbers     columns that are features as they are
    categories  columns of which each value is a flag, with the number of values in the training
                file
    owners      columns that can name the owners, with the number of owners
    classes     what the labels mean, in their order; None: the labels themselves
    """

    columns: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: Mapping[str, int]
    owners: Mapping[str, int]
    classes: tuple[str, ...] | None = None

    def features(self, owner: str | None) -> int:
        """The number of features; the column of owners is none of them."""
        flags = [count for name, count in self.categories.items() if name != owner]
        return len(self.numbers) + sum(flags)

    def dataset(self, train: bytes, test: bytes, owner: str | None) -> Dataset:
        """The data set of the two texts."""
        how = Preparation(most_categories=max(self.categories.values()), constant="keep")
        data = prepare(self._records(train, owner), self._records(test, owner), how)
        return data if self.classes is None else replace(data, classes=self.classes)

    def _records(self, text: bytes, owner: str | None) -> Records:
        table = parse_csv(text, "the census", DIALECT).rename_columns(list(self.columns))
        chosen = [*self.numbers, *(name for name in self.categories if name != owner)]
        codes = [name for name in self.categories if name != owner]
        roles = Roles(self.columns[-1], owner, chosen, codes=codes)
        return records_of_table(table, roles, "the census")


class CensusData:
    """What the data sets of a census share; `owner` is the column that names the owners, or None.

    files   the training file and the test file
    table   their columns
    counts  the training records of each class
    """

    name: ClassVar[str]
    folder: ClassVar[str]
    files: ClassVar[tuple[KnownFile, ...]]
    table: ClassVar[CensusTable]
    counts: ClassVar[tuple[int, ...]]
    owner: str | None

    def shape(self) -> tuple[int, int]:
        return self.table.features(self.owner), len(self.counts)

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        return np.array(self.counts)

    def owner_counts(self, streams: Streams) -> NDArray[np.int64]:
        return self.load(streams).owner_counts()

    def load(self, streams: Streams) -> Dataset:
        paths = [data_files.require(self.name, self.folder, file) for file in self.files]
        key = f"{self.name}-{self.owner or 'no-owners'}"
        return cached(key, 1, paths, lambda: self._dataset(paths))

    def _dataset(self, paths: list[Path]) -> Dataset:
        train, test = (
            self.records(data_files.read(path, file))
            for path, file in zip(paths, self.files, strict=True)
        )
        return self.table.dataset(train, test, self.owner)

    def records(self, text: bytes) -> bytes:
        """The records of a file, labelled as in the other; by default the file as it is."""
        return text
