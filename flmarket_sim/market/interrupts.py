"""Ctrl-C, SIGTERM and SIGHUP during a run: they wait for the end of the round, but not for long.

The end of a round is the best moment, because a checkpoint can be taken there. A round of many
owners can take minutes, so after half a second the run is stopped wherever it is. Its log is then
readable up to the last round in the journal, and it goes on from its last checkpoint
(docs/decisions/0007).
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import simpy
from simpy.core import EmptySchedule

PATIENCE = 0.5  # seconds that a round may still take


class Interrupts:
    """Whether somebody wants the run to stop, and whether it must stop at once."""

    def __init__(self) -> None:
        self.requested = self.overdue = self.taken = False
        self._timer = threading.Timer(PATIENCE, self._hurry)
        self._timer.daemon = True

    def note(self, number: int, frame: Any) -> None:
        """The handler of signals. The second one takes effect at once."""
        if self.requested:
            self.overdue = True
            raise KeyboardInterrupt
        self.requested = True
        self._timer.start()

    def at_end_of_round(self) -> bool:
        """Whether the run stops here. It may then take its time to write a checkpoint."""
        if self.requested:
            self.taken = True
            self._timer.cancel()
        return self.requested

    def close(self) -> None:
        self._timer.cancel()

    def _hurry(self) -> None:
        if not self.taken:
            self.overdue = True
            _thread.interrupt_main()  # calls `note` in the main thread


@contextmanager
def interrupts_between_rounds() -> Iterator[Interrupts]:
    """Notes signals in the block. One that came after the last round ends the block.

    Only the main thread can handle signals; other threads leave them as they are.
    """
    interrupts = Interrupts()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [signal.SIGINT, signal.SIGTERM]
        hangup = getattr(signal, "SIGHUP", None)
        if hangup is not None and callable(signal.getsignal(hangup)):  # the command line hears it
            numbers.append(hangup)
        before = {number: signal.signal(number, interrupts.note) for number in numbers}
    try:
        yield interrupts
        if interrupts.requested:
            raise KeyboardInterrupt
    finally:
        interrupts.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def run_events(env: simpy.Environment, interrupts: Interrupts) -> None:
    """All events in order. SimPy hands an interrupt inside of a process on as an event of its own,
    behind all others of the same moment; here the run stops before them."""
    try:
        while not interrupts.overdue:
            env.step()
    except EmptySchedule:
        return
    raise KeyboardInterrupt
