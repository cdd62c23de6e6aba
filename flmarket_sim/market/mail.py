"""How messages travel: a letter to one receiver, an inbox for many senders. One SimPy event a message."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import simpy
from simpy.events import NORMAL, Event


class Letter(Event):
    """A message on its way to one process: `yield letter` waits for it, `send` lets it arrive after a delay.

    A process that expects an answer puts an empty letter into its own message, and the other side fills it in.
    """

    __slots__ = ()

    def send(self, message: Any, delay: float) -> None:
        self._ok = True
        self._value = message
        self.env.schedule(self, NORMAL, delay)


class Inbox:
    """Where many senders' messages arrive. `collect` waits for a number of them or for a deadline.

    What arrives after that goes to `too_late`.
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
        """A message that arrives here after `delay`."""
        arrival = self.env.timeout(delay, message)
        arrival.callbacks.append(self.receive)

    def collect(self, wanted: int, deadline: float) -> Generator[Event, Any, list[Any]]:
        """The messages that arrived, in order of arrival, once there are `wanted` or `deadline` seconds passed."""
        self.wanted = wanted
        if len(self.messages) < wanted:
            yield self.full | self.env.timeout(deadline)
        self.open = False
        return self.messages
