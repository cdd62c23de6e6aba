"""Data sets of the user's own files: `csv` and `parquet`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.errors import InputError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.preparation import (
    Categorical,
    Constant,
    Missing,
    Preparation,
    Standardise,
    prepare,
)
from flmarket_sim.learning.record_files import (
    MISSING_TEXTS,
    CsvDialect,
    existing_file,
    file_sha256,
    read_csv_table,
    read_parquet_table,
)
from flmarket_sim.learning.records import Records, Roles, records_of_table
from flmarket_sim.randomness import Streams

Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
KEPT = 2  # data sets of files that this process remembers
_prepared: dict[tuple[str, ...], Dataset] = {}


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The options that CSV and Parquet files share; docs/own-data.md explains each."""

    path: Text
    label: Text
    test: Share | Text = 0.2
    owner: Text | None = None
    features: list[str] | None = None
    ignore: list[str] | None = None
    codes: list[str] | None = None
    standardise: Standardise = "unit"
    missing: Missing = "refuse"
    categorical: Categorical = "one-hot"
    most_categories: Annotated[int, Field(ge=1)] = 100
    constant: Constant = "refuse"
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        data = self.load(streams)
        return np.bincount(data.train_y, minlength=len(data.classes))

    def owner_counts(self, streams: Streams) -> NDArray[np.int64]:
        return self.load(streams).owner_counts()

    def file_hashes(self) -> dict[str, str]:
        return {path: file_sha256(existing_file(path)) for path in self._paths()}

    def load(self, streams: Streams) -> Dataset:
        """The same for every seed. The process remembers it while the files stay the same."""
        facts = []
        for path in self._paths():
            found = existing_file(path)
            state = found.stat()
            facts.append(f"{found.resolve()} {state.st_size} {state.st_mtime_ns}")
        key = (repr(self), *facts)
        if key not in _prepared:
            data = self._prepare()
            while len(_prepared) >= KEPT:
                del _prepared[next(iter(_prepared))]
            _prepared[key] = data
        return _prepared[key]

    def table(self, path: Path) -> pa.Table:
        """The table of one file."""
        raise NotImplementedError

    def _paths(self) -> list[str]:
        return [self.path, self.test] if isinstance(self.test, str) else [self.path]

    def _prepare(self) -> Dataset:
        found = existing_file(self.path)
        if self.sha256 is not None and (now := file_sha256(found)) != self.sha256:
            raise InputError(
                f"{self.path} is not the file that the scenario means: its SHA-256 is {now}, "
                f"and data.sha256 is {self.sha256}"
            )
        how = Preparation(
            self.standardise, self.missing, self.categorical, self.most_categories, self.constant
        )
        test = self.test
        held_out = self._records(test, None) if isinstance(test, str) else test
        return prepare(self._records(self.path, self.owner), held_out, how)

    def _records(self, path: str, owner: str | None) -> Records:
        table = self.table(existing_file(path))
        ignored = set(self.ignore or ())
        if owner is None and self.owner is not None:  # test records need no owner
            ignored |= {self.owner} & set(table.column_names)
        if path != self.path:
            ignored &= set(table.column_names)
        roles = Roles(self.label, owner, self.features, tuple(ignored), tuple(self.codes or ()))
        return records_of_table(table, roles, path)


@dataclass(frozen=True, kw_only=True)
class CsvData(FileOptions):
    """Records of a CSV file of yours: any columns, a column with the label, maybe one of owners."""

    name: ClassVar[str] = "csv"

    delimiter: str = ","
    header: bool = True
    encoding: str = "utf-8"
    missing_texts: list[str] | None = None

    def table(self, path: Path) -> pa.Table:
        texts = MISSING_TEXTS if self.missing_texts is None else tuple(self.missing_texts)
        return read_csv_table(path, CsvDialect(self.delimiter, self.header, self.encoding, texts))


@dataclass(frozen=True, kw_only=True)
class ParquetData(FileOptions):
    """Records of a Parquet file of yours, with the same options as a CSV file."""

    name: ClassVar[str] = "parquet"

    def table(self, path: Path) -> pa.Table:
        return read_parquet_table(path)
