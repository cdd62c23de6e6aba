"""A log that keeps the `round` events and forgets the rest: for runs of which only totals are wanted."""

from __future__ import annotations

from typing import Any

from flmarket_sim.eventlog.parquet_log import ParquetLog
from flmarket_sim.eventlog.pending_events import EventTable
from flmarket_sim.eventlog.schema import columns


class RoundLog(ParquetLog):
    """Takes every event as ParquetLog does and writes no file. The values of `rounds` are those that a file would have."""

    def __init__(self, buyers: tuple[str, ...]) -> None:
        self.seq = 0
        self.buyers = buyers
        self.kept: list[tuple[Any, ...]] = []

    def row(self, kind: str, *values: Any) -> None:
        self.seq += 1
        if kind == "round":
            self.kept.append((self.seq, *values))

    def block(self, kind: str, count: int, time: float, *values: Any) -> None:
        self.seq += count

    def table(self, kind: str, *values: Any) -> EventTable:
        return _Forgotten(self)

    @property
    def due(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def note(self) -> None:
        pass

    def close(self) -> None:
        pass

    def rounds(self) -> list[dict[str, Any]]:
        """One dict an event of kind `round`, as `read_events(run, "round").to_pylist()` gives them."""
        names = [column.name for column in columns("round", self.buyers)]
        rows = [dict(zip(names, values, strict=True)) for values in self.kept]
        for row in rows:
            row["buyer"] = self.buyers[row["buyer"]]
        return rows


class _Forgotten(EventTable):
    """Rows that may happen and are only counted."""

    __slots__ = ()

    def __init__(self, log: ParquetLog) -> None:
        self.log = log

    def happen(self, row: int, time: float) -> None:
        self.log.seq += 1
