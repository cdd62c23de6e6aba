"""A log without files: it keeps the `round` events and only counts the others."""

from __future__ import annotations

from typing import Any

from flmarket_sim.eventlog.log import event_count
from flmarket_sim.eventlog.record import Integers, Record
from flmarket_sim.eventlog.schema import ENVELOPE, RoundRecord


class RoundLog:
    """A Log without files. The values of `rounds` are those that a file would have."""

    due = False

    def __init__(self, buyers: tuple[str, ...]) -> None:
        self.seq = 0
        self.buyers = buyers
        self._rounds: list[dict[str, Any]] = []

    def write(
        self,
        record: Record,
        *,
        time: float,
        round: int,
        buyer: int,
        sender: Integers,
        receiver: Integers,
    ) -> None:
        count = event_count(sender, receiver)
        self.seq += 1 if count is None else count
        if isinstance(record, RoundRecord):
            envelope = (self.seq, time, round, self.buyers[buyer], sender, receiver)
            names = [column.name for column in (*ENVELOPE, *record.columns)]
            cells = [
                cell if column.names is None else column.names[cell]
                for column, cell in zip(record.columns, record.cells(), strict=True)
            ]
            self._rounds.append(dict(zip(names, (*envelope, *cells), strict=True)))

    def table(
        self, record: Record, *, round: int, buyer: int, sender: Integers, receiver: Integers
    ) -> CountedTable:
        return CountedTable(self)

    def flush(self) -> None:
        """There are no files."""

    def note(self) -> None:
        """There are no files."""

    def rounds(self) -> list[dict[str, Any]]:
        """A dict for each `round` event, as `read_events(run, "round").to_pylist()` gives them."""
        return self._rounds


class CountedTable:
    """Events that may happen and are only counted."""

    __slots__ = ("log",)

    def __init__(self, log: RoundLog) -> None:
        self.log = log

    def happen(self, row: int, time: float) -> None:
        self.log.seq += 1
