"""Hashes of the values of a log. They depend neither on its parts nor on how Parquet stores it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flmarket_sim.eventlog.record import Column


class KindHash:
    """A running hash of all events of one kind, column by column."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.rows = 0
        self._hashes = [_ColumnHash() for _ in columns]

    def update(self, arrays: Sequence[pa.Array]) -> None:
        """Adds events, given as an array for each column. Any numbering of names gives the same
        hash."""
        self.rows += len(arrays[0])
        for column, array, hashed in zip(self.columns, arrays, self._hashes, strict=True):
            hashed.update(_positions(column, array))

    def hexdigest(self) -> str:
        whole = hashlib.sha256()
        for column, hashed in zip(self.columns, self._hashes, strict=True):
            whole.update(f"{column.name}:{hashed.hexdigest()};".encode())
        return whole.hexdigest()


def _positions(column: Column, array: pa.Array) -> pa.Array:
    """Names as positions in the list of the schema; a file may number them differently."""
    if not isinstance(array, pa.DictionaryArray):
        return array
    names = pa.array(column.names, pa.string())
    if array.dictionary.equals(names):
        return array.indices
    return pc.index_in(array.dictionary, value_set=names).cast(column.type).take(array.indices)


class _ColumnHash:
    """A running hash of one column: numbers, nulls and lengths of lists are hashed separately."""

    def __init__(self) -> None:
        self.values, self.valid, self.lengths = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()

    def update(self, array: pa.Array) -> None:
        self.valid.update(np.asarray(array.is_valid()).tobytes())
        if pa.types.is_list(array.type):
            self.lengths.update(
                array.value_lengths()
                .fill_null(0)
                .to_numpy(zero_copy_only=False)
                .astype("<i8")
                .tobytes()
            )
            array = array.flatten()
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int8())
        if array.null_count:
            array = array.fill_null(0)
        self.values.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).tobytes())

    def hexdigest(self) -> str:
        return hashlib.sha256(
            self.values.digest() + self.valid.digest() + self.lengths.digest()
        ).hexdigest()
