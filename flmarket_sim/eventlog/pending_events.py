"""Events of one kind on their way to a file: as they were logged, then as Arrow batches in order of `seq`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.eventlog.schema import Column, arrow_schema, columns


class EventTable:
    """Rows of one kind, of which `happen` logs one."""

    __slots__ = ("happened", "log", "pending", "values")

    def __init__(self, log: Any, pending: PendingEvents, values: tuple[Any, ...]) -> None:
        self.log, self.pending, self.values = log, pending, values
        self.happened: list[tuple[int, float, int]] = []

    def happen(self, row: int, time: float) -> None:
        log = self.log
        log.seq = seq = log.seq + 1
        if not self.happened:
            self.pending.tables.append(self)
        self.happened.append((seq, time, row))

    def as_block(self) -> tuple[int, tuple[Any, ...]]:
        """What happened, as a block."""
        seq, time, row = zip(*self.happened, strict=True)
        rows = np.array(row)
        picked = [v[rows] if isinstance(v, np.ndarray) else v for v in self.values]
        return len(rows), (np.array(seq, dtype=np.uint64), np.array(time), *picked)


class PendingEvents:
    """What is pending of one kind. Batches follow each other: all of an earlier one happened before all of a later one.

    `noted` of the batches are in the journal.
    """

    def __init__(self, kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...]) -> None:
        self.columns = columns(kind, buyers, behaviours)
        self.schema = arrow_schema(kind, buyers, behaviours)
        self.rows: list[tuple[Any, ...]] = []
        self.blocks: list[tuple[int, tuple[Any, ...]]] = []
        self.tables: list[EventTable] = []
        self.batches: list[pa.RecordBatch] = []
        self.noted = 0

    def gather(self) -> None:
        """Makes a further batch of what was logged since the last time."""
        blocks = self.blocks + [table.as_block() for table in self.tables]
        if blocks:
            arrays = self._from_blocks(blocks)
        elif self.rows:
            arrays = [
                _array(c, list(v))
                for c, v in zip(self.columns, zip(*self.rows, strict=True), strict=True)
            ]
        else:
            return
        self.batches.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
        for table in self.tables:
            table.happened = []
        self.rows, self.blocks, self.tables = [], [], []

    def whole(self) -> pa.Table | None:
        """All that is pending in one piece, so that a file's bytes do not show how it came together."""
        return pa.Table.from_batches(self.batches).combine_chunks() if self.batches else None

    def _from_blocks(self, blocks: list[tuple[int, tuple[Any, ...]]]) -> list[pa.Array]:
        """Columns of all blocks in order of `seq`. A value that one block gives for all its rows is repeated."""
        assert not self.rows, "a kind is logged by rows or by blocks, not both"
        counts = np.array([count for count, _ in blocks])
        stacked: list[Any] = []
        for cells in zip(*(values for _, values in blocks), strict=True):
            if any(isinstance(cell, np.ndarray) for cell in cells):
                parts = [
                    c if isinstance(c, np.ndarray) else np.full(n, c)
                    for c, n in zip(cells, counts, strict=True)
                ]
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
        return [
            _array(c, pa.nulls(rows, c.type) if v is None else v)
            for c, v in zip(self.columns, stacked, strict=True)
        ]


def _array(column: Column, values: Any) -> pa.Array:
    if column.names is None:
        if isinstance(values, pa.Array):
            return values
        if (
            isinstance(values, np.ndarray) and values.dtype == object
        ):  # a value that may be null, or a list
            values = values.tolist()
        return pa.array(values, type=column.type)
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    indices = values if isinstance(values, pa.Array) else pa.array(values, type=column.type)
    return pa.DictionaryArray.from_arrays(indices, pa.array(column.names, pa.string()))
