"""Events of one kind before they are in a part: as they were logged, then as Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flmarket_sim.eventlog.record import Column
from flmarket_sim.eventlog.schema import arrow_schema, columns


class Block(NamedTuple):
    """A number of events: each column has an array over them, or one value for all."""

    events: int
    cells: list[Any]


class Numbering(Protocol):
    """Counts the events of a log: `seq` is the number of the last one."""

    seq: int


class PendingTable:
    """Events that may happen. `cells` are those of the columns after `seq` and `time`."""

    __slots__ = ("cells", "happened", "log", "pending")

    def __init__(self, log: Numbering, pending: PendingEvents, cells: list[Any]) -> None:
        self.log, self.pending, self.cells = log, pending, cells
        self.happened: list[tuple[int, float, int]] = []

    def happen(self, row: int, time: float) -> None:
        """Logs the event of a row at this time."""
        log = self.log
        log.seq = seq = log.seq + 1
        if not self.happened:
            self.pending.tables.append(self)
        self.happened.append((seq, time, row))

    def as_block(self) -> Block:
        """The events that happened."""
        seq, time, row = zip(*self.happened, strict=True)
        rows = np.array(row)
        cells = [cell[rows] if isinstance(cell, np.ndarray) else cell for cell in self.cells]
        return Block(len(rows), [np.array(seq, dtype=np.uint64), np.array(time), *cells])


class PendingEvents:
    """The pending events of one kind. All events of a batch happened before all events of the next.

    `noted` is the number of batches that are in the journal.
    """

    def __init__(
        self,
        kind: str,
        buyers: tuple[str, ...],
        behaviours: tuple[str, ...],
        families: tuple[str, ...],
        cheats: tuple[str, ...] = (),
    ) -> None:
        self.columns = columns(kind, buyers, behaviours, families, cheats)
        self.schema = arrow_schema(kind, buyers, behaviours, cheats)
        self.singles: list[list[Any]] = []
        self.blocks: list[Block] = []
        self.tables: list[PendingTable] = []
        self.batches: list[pa.RecordBatch] = []
        self.noted = 0

    def gather(self) -> None:
        """Makes a batch of the events that were logged since the last batch."""
        blocks = self.blocks + [table.as_block() for table in self.tables]
        if self.singles:
            blocks.append(self._as_block(self.singles))
        if not blocks:
            return
        arrays = self._arrays(blocks)
        self.batches.append(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
        for table in self.tables:
            table.happened = []
        self.singles, self.blocks, self.tables = [], [], []

    def whole(self) -> pa.Table | None:
        """All pending events in one piece, so that a file's bytes do not depend on the batches."""
        return pa.Table.from_batches(self.batches).combine_chunks() if self.batches else None

    def _as_block(self, singles: list[list[Any]]) -> Block:
        by_column = zip(self.columns, zip(*singles, strict=True), strict=True)
        return Block(len(singles), [_each(column, cells) for column, cells in by_column])

    def _arrays(self, blocks: list[Block]) -> list[pa.Array]:
        """The columns of all blocks in order of `seq`."""
        counts = np.array([block.events for block in blocks])
        by_column = zip(*(block.cells for block in blocks), strict=True)
        stacked = [
            _stacked(c, cells, counts) for c, cells in zip(self.columns, by_column, strict=True)
        ]
        seq = stacked[0]
        assert seq is not None
        if (seq[1:] < seq[:-1]).any():
            order = np.argsort(seq)
            stacked = [None if values is None else values[order] for values in stacked]
        return [
            _array(c, values, len(seq)) for c, values in zip(self.columns, stacked, strict=True)
        ]


def _stacked(
    column: Column, cells: tuple[Any, ...], counts: NDArray[np.int64]
) -> NDArray[Any] | None:
    """The values of a column over all blocks; None if all are null."""
    is_array = [isinstance(cell, np.ndarray) for cell in cells]
    if not any(is_array):
        values = _each(column, cells)
        return None if values is None else np.repeat(values, counts)
    arrays = np.concatenate(list(compress(cells, is_array)))
    if all(is_array):
        return arrays
    constant = ~np.array(is_array)
    constants = [cell for cell, array in zip(cells, is_array, strict=True) if not array]
    stacked = np.empty(int(counts.sum()), object)
    values = _each(column, constants)
    if values is not None:
        stacked = np.empty(len(stacked), np.result_type(arrays, values))
        stacked[np.repeat(constant, counts)] = np.repeat(values, counts[constant])
    stacked[np.repeat(~constant, counts)] = arrays
    return stacked


def _each(column: Column, cells: Sequence[Any]) -> NDArray[Any] | None:
    """One entry for each cell, also where a cell is a list; None if all cells are None."""
    if cells[0] is None and all(cell is None for cell in cells):
        return None
    return np.fromiter(cells, object) if pa.types.is_list(column.type) else np.array(cells)


def _array(column: Column, values: NDArray[Any] | None, count: int) -> pa.Array:
    if values is None:
        array = pa.nulls(count, column.type)
    else:  # an array of objects has nulls or lists in it
        plain = values.tolist() if values.dtype == object else values
        array = pa.array(plain, type=column.type)
    if column.names is None:
        return array
    return pa.DictionaryArray.from_arrays(array, pa.array(column.names, pa.string()))
