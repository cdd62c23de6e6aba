"""Writes events to Parquet: one open file a kind, row groups by count, the same bytes for the same events.

Rows come one at a time (`row`: what a single owner does) or as a block (`block`: what the broker says to many owners at one
moment). Each kind uses one of the two. A part becomes visible under its final name when it is complete.
"""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.schema import KINDS, Column, arrow_schema, columns

ROWS_PER_GROUP = 2**17
GROUPS_PER_PART = 16


class EventLog:
    """The event log of one run. `seq` numbers every event in the order in which it was logged."""

    def __init__(self, folder: Path, buyers: tuple[str, ...]) -> None:
        self.folder = folder
        self.seq = 0
        self.kinds = {kind: _KindWriter(folder, kind, buyers) for kind in KINDS}

    def row(self, kind: str, *values: Any) -> None:
        """One event: time, round, buyer, sender, receiver, then the payload in the order of the schema."""
        self.seq = seq = self.seq + 1
        writer = self.kinds[kind]
        writer.rows.append((seq, *values))
        if len(writer.rows) >= ROWS_PER_GROUP:
            writer.flush()

    def block(self, kind: str, count: int, *values: Any) -> None:
        """`count` events at once; each value is an array of that length or one value for all."""
        if count:
            self.kinds[kind].block(self.seq + 1, count, values)
            self.seq += count

    def close(self) -> None:
        """Writes what is pending and completes all files; the log is readable afterwards whatever happened before."""
        for writer in self.kinds.values():
            writer.close()

    def summary(self) -> dict[str, Any]:
        """Rows of each kind, and hashes of their values that do not depend on how Parquet stores them."""
        total = hashlib.sha256()
        kinds = {}
        for kind, writer in self.kinds.items():
            digest = writer.digest()
            total.update(f"{kind}:{digest};".encode())
            kinds[kind] = {"rows": writer.total, "sha256": digest}
        return {"events": sum(w.total for w in self.kinds.values()), "sha256": total.hexdigest(), "kinds": kinds}


class _KindWriter:
    """Pending rows and blocks of one kind, and its open file."""

    def __init__(self, folder: Path, kind: str, buyers: tuple[str, ...]) -> None:
        self.folder = folder / f"kind={kind}"
        self.kind = kind
        self.columns = columns(kind, buyers)
        self.schema = arrow_schema(kind, buyers)
        self.rows: list[tuple[Any, ...]] = []
        self.blocks: list[tuple[int, int, tuple[Any, ...]]] = []
        self.pending = 0
        self.total = 0
        self.part = 0
        self.groups = 0
        self.file: pq.ParquetWriter | None = None
        self.hashes = [hashlib.sha256() for _ in self.columns]

    def block(self, seq: int, count: int, values: tuple[Any, ...]) -> None:
        self.blocks.append((seq, count, values))
        self.pending += count
        if self.pending >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        if not self.rows and not self.blocks:
            return
        if self.blocks:
            arrays = self._from_blocks()
        else:
            arrays = [_array(c, list(v)) for c, v in zip(self.columns, zip(*self.rows, strict=True), strict=True)]
        self.rows, self.blocks, self.pending = [], [], 0
        for array, digest in zip(arrays, self.hashes, strict=True):
            _hash(array, digest)
        self.total += len(arrays[0])
        try:
            if self.file is None:
                self._open()
            assert self.file is not None
            self.file.write_table(pa.Table.from_arrays(arrays, schema=self.schema), row_group_size=ROWS_PER_GROUP)
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

    def _from_blocks(self) -> list[pa.Array]:
        counts = np.array([count for _, count, _ in self.blocks])
        first = np.array([seq for seq, _, _ in self.blocks], dtype=np.uint64)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        seq = np.repeat(first, counts) + within.astype(np.uint64)
        arrays = [_array(self.columns[0], seq)]
        for place, column in enumerate(self.columns[1:]):
            cells = [values[place] for _, _, values in self.blocks]
            if any(isinstance(cell, np.ndarray) for cell in cells):
                arrays.append(_array(column, np.concatenate([np.broadcast_to(c, n) for c, n in zip(cells, counts, strict=True)])))
            else:
                arrays.append(_array(column, np.repeat(np.array(cells), counts)))
        return arrays

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        plain = [c.name for c in self.columns if c.type == pa.float64() or c.name in ("time", "values", "recall")]
        encoding = {"seq": "DELTA_BINARY_PACKED"}
        if "data_size" in self.schema.names:
            plain.append("data_size")
        dictionary = [f.name for f in self.schema if f.name != "seq" and f.name not in ("time",)]
        self.file = pq.ParquetWriter(
            self.folder / f".part-{self.part:05d}.tmp",
            self.schema,
            compression="zstd",
            use_dictionary=dictionary,
            column_encoding=encoding,
            write_statistics=True,
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
        return pa.array(values, type=column.type)
    return pa.DictionaryArray.from_arrays(pa.array(values, type=column.type), list(column.names))


def _hash(array: pa.Array, digest: Any) -> None:
    """Feeds the values of an array to a hash: little-endian numbers, nulls marked, lists as lengths and values."""
    if isinstance(array, pa.DictionaryArray):
        array = array.indices
    if array.null_count:
        digest.update(np.asarray(array.is_valid()).tobytes())
    if pa.types.is_list(array.type):
        lengths = array.value_lengths().fill_null(-1)
        digest.update(lengths.to_numpy(zero_copy_only=False).astype("<i8").tobytes())
        array = array.flatten()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    if array.null_count:
        array = array.fill_null(0)
    digest.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).tobytes())


def disk_error(where: Path, error: OSError) -> FlmarketError:
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"writing failed ({error})"
    return FlmarketError(
        f"{what}: {where}. Complete parts stay readable; free some space, or name another place with --out, and run again"
    )
