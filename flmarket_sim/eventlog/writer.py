"""Writes events to Parquet: one open file a kind, row groups by count, the same bytes for the same events.

Three ways to log, each as cheap as what it is for:

    row      one event with its values: what happens once a round
    block    many events at one moment: what the broker says to many owners
    table    rows that may happen, one by one, each at its own time: what the owners of a round do

A part becomes visible under its final name when it is complete.
"""

from __future__ import annotations

import errno
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.schema import KINDS, Column, arrow_schema, columns

EVENTS_PER_FLUSH = 2**18  # of all kinds together: each then writes one row group
GROUPS_PER_PART = 16


class EventLog:
    """The event log of one run. `seq` numbers every event in the order in which it was logged."""

    def __init__(self, folder: Path, buyers: tuple[str, ...], behaviours: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.seq = 0
        self.flushed = 0
        self.kinds = {kind: _KindWriter(folder, kind, buyers, behaviours) for kind in KINDS}

    def row(self, kind: str, *values: Any) -> None:
        """One event: time, round, buyer, sender, receiver, then the payload in the order of the schema."""
        self.seq += 1
        self.kinds[kind].rows.append((self.seq, *values))

    def block(self, kind: str, count: int, time: float, *values: Any) -> None:
        """`count` events at one time; each value is an array of that length or one value for all."""
        if count:
            seq = np.arange(self.seq + 1, self.seq + count + 1, dtype=np.uint64)
            self.kinds[kind].blocks.append((count, (seq, time, *values)))
            self.seq += count

    def table(self, kind: str, *values: Any) -> EventTable:
        """Events that may happen: round, buyer, sender, receiver and payload, each an array over them or one value."""
        return EventTable(self, self.kinds[kind], values)

    def flush(self) -> None:
        """Writes a row group of every kind once enough events have come together."""
        if self.seq - self.flushed >= EVENTS_PER_FLUSH:
            self.flushed = self.seq
            for writer in self.kinds.values():
                writer.flush()

    def close(self) -> None:
        """Writes what is pending and completes all files; the log is readable afterwards whatever happened before."""
        with ThreadPoolExecutor(max_workers=2) as pool:  # Arrow encodes outside of Python's lock
            for closing in [pool.submit(writer.close) for writer in self.kinds.values()]:
                closing.result()

    def summary(self) -> dict[str, Any]:
        """Rows of each kind, and hashes of their values that do not depend on how Parquet stores them."""
        total = hashlib.sha256()
        kinds = {}
        for kind, writer in self.kinds.items():
            digest = writer.digest()
            total.update(f"{kind}:{digest};".encode())
            kinds[kind] = {"rows": writer.total, "sha256": digest}
        return {
            "events": sum(w.total for w in self.kinds.values()),
            "sha256": total.hexdigest(),
            "kinds": kinds,
        }


class EventTable:
    """Rows of one kind, of which `happen` logs one."""

    __slots__ = ("happened", "log", "values", "writer")

    def __init__(self, log: EventLog, writer: _KindWriter, values: tuple[Any, ...]) -> None:
        self.log, self.writer, self.values = log, writer, values
        self.happened: list[tuple[int, float, int]] = []

    def happen(self, row: int, time: float) -> None:
        log = self.log
        log.seq = seq = log.seq + 1
        if not self.happened:
            self.writer.tables.append(self)
        self.happened.append((seq, time, row))

    def as_block(self) -> tuple[int, tuple[Any, ...]]:
        """What happened, as a block."""
        seq, time, row = zip(*self.happened, strict=True)
        rows = np.array(row)
        picked = [v[rows] if isinstance(v, np.ndarray) else v for v in self.values]
        return len(rows), (np.array(seq, dtype=np.uint64), np.array(time), *picked)


class _KindWriter:
    """What is pending of one kind, and its open file."""

    def __init__(self, folder: Path, kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...]) -> None:
        self.folder = folder / f"kind={kind}"
        self.columns = columns(kind, buyers, behaviours)
        self.schema = arrow_schema(kind, buyers, behaviours)
        self.rows: list[tuple[Any, ...]] = []
        self.blocks: list[tuple[int, tuple[Any, ...]]] = []
        self.tables: list[EventTable] = []
        self.total = 0
        self.part = 0
        self.groups = 0
        self.file: pq.ParquetWriter | None = None
        self.hashes = [_ColumnHash() for _ in self.columns]

    def flush(self) -> None:
        blocks = self.blocks + [table.as_block() for table in self.tables]
        arrays = []
        if blocks:
            arrays = self._from_blocks(blocks)
        elif self.rows:
            arrays = [_array(c, list(v)) for c, v in zip(self.columns, zip(*self.rows, strict=True), strict=True)]
        if not arrays:
            return
        try:
            if self.file is None:
                self._open()
            assert self.file is not None
            self.file.write_table(pa.Table.from_arrays(arrays, schema=self.schema), row_group_size=EVENTS_PER_FLUSH)
            for array, digest in zip(arrays, self.hashes, strict=True):
                digest.update(array)
            self.total += len(arrays[0])
            for table in self.tables:
                table.happened = []
            self.rows, self.blocks, self.tables = [], [], []
            self.groups += 1
            if self.groups >= GROUPS_PER_PART:
                self._complete()
        except OSError as error:
            raise disk_error(self.folder, error) from error

    def close(self) -> None:
        self.flush()
        try:
            self._complete()
        except OSError as error:
            raise disk_error(self.folder, error) from error

    def digest(self) -> str:
        whole = hashlib.sha256()
        for column, digest in zip(self.columns, self.hashes, strict=True):
            whole.update(f"{column.name}:{digest.hexdigest()};".encode())
        return whole.hexdigest()

    def _from_blocks(self, blocks: list[tuple[int, tuple[Any, ...]]]) -> list[pa.Array]:
        """Columns of all blocks in order of `seq`. A value that one block gives for all its rows is repeated."""
        assert not self.rows, "a kind is logged by rows or by blocks, not both"
        counts = np.array([count for count, _ in blocks])
        stacked: list[Any] = []
        for cells in zip(*(values for _, values in blocks), strict=True):
            if any(isinstance(cell, np.ndarray) for cell in cells):
                parts = [c if isinstance(c, np.ndarray) else np.full(n, c) for c, n in zip(cells, counts, strict=True)]
                stacked.append(np.concatenate(parts))
            elif all(cell is None for cell in cells):
                stacked.append(None)  # as null as can be
            else:
                stacked.append(np.repeat(np.array(cells), counts))
        seq = stacked[0]
        if (seq[1:] < seq[:-1]).any():
            order = np.argsort(seq)
            stacked = [None if column is None else column[order] for column in stacked]
        rows = len(seq)
        return [_array(c, pa.nulls(rows, c.type) if v is None else v) for c, v in zip(self.columns, stacked, strict=True)]

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ordered = ("seq", "time")  # never worth a dictionary
        self.file = pq.ParquetWriter(
            self.folder / f".part-{self.part:05d}.tmp",
            self.schema,
            compression="zstd",
            use_dictionary=[name for name in self.schema.names if name not in ordered],
            column_encoding={"seq": "DELTA_BINARY_PACKED"},
        )

    def _complete(self) -> None:
        if self.file is None:
            return
        self.file.close()
        hidden = self.folder / f".part-{self.part:05d}.tmp"
        hidden.replace(self.folder / f"part-{self.part:05d}.parquet")
        self.file, self.groups, self.part = None, 0, self.part + 1


def _array(column: Column, values: Any) -> pa.Array:
    if column.names is None:
        if isinstance(values, pa.Array):
            return values
        if isinstance(values, np.ndarray) and values.dtype == object:  # a value that may be null, or a list
            values = values.tolist()
        return pa.array(values, type=column.type)
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    indices = values if isinstance(values, pa.Array) else pa.array(values, type=column.type)
    return pa.DictionaryArray.from_arrays(indices, pa.array(column.names, pa.string()))


class _ColumnHash:
    """A hash of a column's values that does not depend on how it is cut: numbers, nulls and list lengths apart."""

    def __init__(self) -> None:
        self.values, self.valid, self.lengths = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()

    def update(self, array: pa.Array) -> None:
        if isinstance(array, pa.DictionaryArray):
            array = array.indices
        self.valid.update(np.asarray(array.is_valid()).tobytes())
        if pa.types.is_list(array.type):
            self.lengths.update(array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
            array = array.flatten()
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int8())
        if array.null_count:
            array = array.fill_null(0)
        self.values.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).tobytes())

    def hexdigest(self) -> str:
        return hashlib.sha256(self.values.digest() + self.valid.digest() + self.lengths.digest()).hexdigest()


def disk_error(where: Path, error: OSError) -> FlmarketError:
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"writing failed ({error})"
    return FlmarketError(
        f"{what}: {where}. Complete parts stay readable; free some space, or name another place with --out, and run again"
    )
