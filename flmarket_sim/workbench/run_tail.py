"""The newest events of a run that another process is writing, without disturbing it.

A tail remembers how far it has read: the number of the last event, and its place in the journal.
It opens files for reading only, takes no lock, and decodes `round` events and small groups alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flmarket_sim.eventlog.journal import journals, read_after
from flmarket_sim.eventlog.reader import event_parts

SMALL = (
    64_000  # bytes of the events of a kind: larger ones are not decoded for the list of messages
)
MESSAGES = 24  # of the newest ones
COLUMNS = (
    "seq", "round", "buyer", "budget", "spent", "privacy_sold", "value_sold", "delivered",
    "winners", "valid", "error_bound", "accuracy", "balanced_accuracy", "loss", "ended",
)  # fmt: skip
ENVELOPE = ("kind", "seq", "time", "round", "buyer")
HIDDEN_COLUMNS = {*ENVELOPE, "sender", "receiver"}
Row = dict[str, Any]


@dataclass
class Fresh:
    """What a run has written since the last look."""

    rounds: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    events: int = 0


class RunTail:
    """Reads a growing run from where it stopped before."""

    def __init__(self, run: Path) -> None:
        self.run, self.seq, self.events = run, 0, 0
        self._part = 0  # parts before this one are read
        self._journal: tuple[int, int, int] = (-1, -1, 0)  # number, inode, place

    def fresh(self) -> Fresh:
        """The rounds and messages since the last call; empty if there is nothing new."""
        found = Fresh()
        try:
            self._read_parts(found)
            self._read_journals(found)
        except (
            OSError,
            pa.ArrowException,
        ):  # a file was replaced this moment; the next look has it
            pass
        found.rounds.sort(key=lambda row: row["seq"])
        newest = sorted(found.messages, key=lambda row: row["seq"])[-MESSAGES:]
        found.messages = [_message(row) for row in newest]
        self.seq = max([self.seq, *(row["seq"] for row in found.rounds)])
        found.events = self.events
        return found

    def _read_parts(self, found: Fresh) -> None:
        for part in event_parts(self.run, "round"):
            number = int(part.stem.removeprefix("part-"))
            if number < self._part:
                continue
            file = pq.ParquetFile(part)
            known = [name for name in COLUMNS if name in file.schema_arrow.names]
            found.rounds += self._new(file.read(columns=known))
            self._part = number + 1
        if found.rounds:
            self.events = max(self.events, found.rounds[-1]["seq"])

    def _read_journals(self, found: Fresh) -> None:
        for number, path in journals(self.run / "events").items():
            if number < self._part:
                continue
            inode = path.stat().st_ino
            same = self._journal[:2] == (number, inode)
            place = self._journal[2] if same and path.stat().st_size >= self._journal[2] else 0
            end, content = read_after(
                path, place, lambda kind, size: kind == "round" or size <= SMALL
            )
            self._journal = (number, inode, end)
            self.events = max(self.events, content.seq)
            for kind, batches in content.batches.items():
                table = pa.Table.from_batches(batches)
                if kind == "round":
                    known = [name for name in COLUMNS if name in table.column_names]
                    found.rounds += self._new(table.select(known))
                else:
                    found.messages += _newest(kind, table)

    def _new(self, table: pa.Table) -> list[Row]:
        rows: list[Row] = table.filter(pc.greater(table.column("seq"), self.seq)).to_pylist()
        return rows


def _newest(kind: str, table: pa.Table) -> list[Row]:
    """The newest events of a kind."""
    rows = table.slice(max(0, len(table) - MESSAGES)).to_pylist()
    return [{"kind": kind} | row for row in rows]


def _message(row: Row) -> Row:
    """An event as people read it."""
    says = ", ".join(
        f"{key.replace('_', ' ')} {_short(value)}"
        for key, value in row.items()
        if key not in HIDDEN_COLUMNS and value is not None and not isinstance(value, list)
    )
    parties = {key: _who(row[key], row["buyer"]) for key in ("sender", "receiver")}
    return {key: row[key] for key in ENVELOPE} | parties | {"says": says}


def _who(number: int, buyer: str) -> str:
    return f"owner {number}" if number >= 0 else "broker" if number == -1 else buyer


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
