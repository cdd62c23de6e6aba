"""How messages travel: a letter to one receiver, an inbox for many senders. Each is an event.

This is the only file that uses private fields of SimPy.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from heapq import heappush
from typing import Any, NamedTuple

import simpy
from simpy.events import NORMAL, Event


class Letter(Event):
    """A message on its way to one process: `yield letter` waits for it, `send` makes it arrive.

    A process that expects a reply puts an empty letter into its own message, and the receiver of
    that message sends it.
    """

    __slots__ = ()

    def send(self, message: Any, delay: float) -> None:
        """The message arrives after `delay` seconds."""
        self._ok = True
        self._value = message
        self.env.schedule(self, NORMAL, delay)

    def send_at(self, message: Any, time: float) -> None:
        """The message arrives at this simulated time."""
        self._ok = True
        self._value = message
        heappush(self.env._queue, (time, NORMAL, next(self.env._eid), self))


class Inbox:
    """Receives the messages of many senders. `collect` waits for some of them, or for a deadline.

    Messages that arrive after that go to `too_late`.
    """

    def __init__(self, env: simpy.Environment, too_late: Callable[[Any], None]) -> None:
        self.env = env
        self.messages: list[Any] = []
        self.wanted = -1
        self.full = env.event()
        self.open = True
        self.too_late = too_late

    def receive(self, event: Event) -> None:
        """Callback of a message's arrival."""
        if self.open:
            self.messages.append(event.value)
            if len(self.messages) == self.wanted:
                self.full.succeed()
        else:
            self.too_late(event.value)

    def send(self, message: Any, delay: float) -> None:
        """The message arrives here after `delay` seconds."""
        arrival = self.env.timeout(delay, message)
        arrival.callbacks.append(self.receive)

    def collect(self, wanted: int, deadline: float) -> Generator[Event, Any, list[Any]]:
        """The messages in order of arrival, once `wanted` are there or `deadline` is over."""
        self.wanted = wanted
        if len(self.messages) < wanted:
            yield self.full | self.env.timeout(deadline)
        self.open = False
        return self.messages


class Arrival(NamedTuple):
    """An event that a process waits for, when it happens, and the message that it brings."""

    time: float
    event: Event
    message: Any


def arrivals(env: simpy.Environment) -> Iterator[Arrival]:
    """All scheduled events for which a process waits, in the order in which they will happen."""
    for time, _, _, event in sorted(env._queue, key=lambda entry: entry[:3]):
        if event.callbacks:  # nobody waits for a deadline that has become irrelevant
            yield Arrival(time, event, event._value)


def failing(env: simpy.Environment) -> bool:
    """Whether a process has failed at this moment, so that the run is about to end."""
    return any(entry[3]._ok is False for entry in env._queue)


def events_scheduled(env: simpy.Environment) -> int:
    """The number of events that were ever scheduled. The call counts as one more."""
    return next(env._eid)
