"""What the market writes its events to."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from flmarket_sim.eventlog.record import Integers, Record


class EventTable(Protocol):
    """Events that may happen, one row each; `happen` logs one of them at its time."""

    def happen(self, row: int, time: float) -> None: ...


class Log(Protocol):
    """An event log. Events are numbered as they are logged, and `seq` is the last number.

    `buyer` is a position in the scenario's list of buyers; `sender` and `receiver` are
    participants' numbers. These two and the fields of a record are arrays over events, or one value
    for all.
    """

    seq: int

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
        """Logs an event for each entry of `sender` or `receiver`, all at one time."""

    def table(
        self, record: Record, *, round: int, buyer: int, sender: Integers, receiver: Integers
    ) -> EventTable:
        """Events that may happen, each at its own time. Arrays may change until then."""

    @property
    def due(self) -> bool:
        """Whether `flush` has anything to do."""

    def flush(self) -> None:
        """Called at the end of every round: writes to disk what is due."""

    def note(self) -> None:
        """Everything logged so far is on disk afterwards, in a log that has files."""


def event_count(sender: Integers, receiver: Integers) -> int | None:
    """The number of events between these participants: an array names one for each event.

    None means a single event, from one participant to one other.
    """
    for participants in (receiver, sender):
        if isinstance(participants, np.ndarray):
            return len(participants)
    return None
