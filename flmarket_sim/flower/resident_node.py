"""A node of Flower that lives in one process: it answers messages with its own ClientApp.

Flower's SuperNode starts a process for every message, and runs the code that comes with the run. A
resident node speaks the same protocol to the same SuperLink (the Fleet API), but keeps its process,
and runs the code on its own disk whatever a run brings along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.flower.fleet import Fleet, Link, LostError, connected, failed
from flmarket_sim.flower.library import flower, say

SHORTEST, LONGEST = 0.1, 1.0  # seconds between looks for messages
GROWTH = 1.5
QUIET, IDLE = 120.0, 5.0  # after so many seconds without a message, so many between looks
PATIENCE, MOST = 80.0, 2.0  # times what a look takes, at most so many seconds, between looks
FIRST, LAST = 1.0, 30.0  # seconds between attempts to connect again


def stay(
    link: Link, app: Any, settings: Mapping[str, Any], stop: threading.Event, patience: float = 60.0
) -> None:
    """Answers messages until `stop`. `settings` are the node_config of its contexts.

    A SuperLink that cannot be reached for `patience` seconds at the beginning is an error. One that
    is lost later, fails, or does not know its nodes after a restart, is connected to again.
    """
    began, known, wait, told = time.monotonic(), False, FIRST, ""

    def there() -> None:
        """The SuperLink has said whether there is a message."""
        nonlocal known, wait, told
        if known and told:
            say(f"the connection to {link.address} is there again")
        known, wait, told = True, FIRST, ""

    while not stop.is_set():
        try:
            with connected(link, stop) as fleet:
                _answer_messages(_Node(fleet, app, settings, there), stop)
        except LostError as error:
            if not known and time.monotonic() - began > patience:
                raise FlmarketError(f"{link.address}: {error}") from None
            if str(error) != told and not stop.is_set():
                say(f"{link.address}: {error}; it is tried again until that changes")
            told = str(error)
            stop.wait(wait)
            wait = min(2 * wait, LAST)


def _answer_messages(node: _Node, stop: threading.Event) -> None:
    """Answers messages until `stop`, or until the connection is lost."""
    pause, heard = SHORTEST, time.monotonic()
    while not stop.is_set():
        if node.answer_one():
            pause, heard = SHORTEST, time.monotonic()
        longest = LONGEST if time.monotonic() - heard < QUIET else IDLE
        stop.wait(max(pause, min(PATIENCE * node.look, MOST)))
        pause = min(GROWTH * pause, longest)


class _Letter:
    """A message of which the head has come: the numbers of its parts, and those that have come."""

    def __init__(self, run: int, name: str, parts: list[str]) -> None:
        self.run, self.name, self.parts = run, name, parts
        self.contents: dict[str, bytes] = {}


class _Node:
    """One connection to a SuperLink, and the app behind it. `there` hears of every answer to a look
    for messages."""

    def __init__(
        self, fleet: Fleet, app: Any, settings: Mapping[str, Any], there: Callable[[], None]
    ) -> None:
        self.fleet, self.app, self.settings, self.there = fleet, app, dict(settings), there
        self.objects = flower("flwr.supercore.inflatable.inflatable_object")
        self.transfer = flower("flwr.supercore.inflatable.inflatable_utils")
        self.letters: list[_Letter] = []  # not answered yet
        self.look = 0.0  # seconds that the last look for messages took

    def answer_one(self) -> bool:
        """Answers a message if there is one. A message that is lost on the way is not answered."""
        try:
            began = time.monotonic()
            received = self.fleet.receive()
            self.look = time.monotonic() - began
            self.there()
            if received is not None:
                head, tree = received
                parts = [part.object_id for part in self.objects.iterate_object_tree(tree)]
                self.letters.append(_Letter(head.metadata.run_id, head.metadata.message_id, parts))
            for letter in list(self.letters):
                if self._is_whole(letter):
                    self.letters.remove(letter)
                    self._answer(letter)
                    return True
        except LostError:
            raise
        except Exception as error:  # what Flower raises where a message or its run is gone
            say(f"a message was lost: {error}")
            return False
        return received is not None

    def _is_whole(self, letter: _Letter) -> bool:
        """Gets the parts of a message that are missing; False if its sender has not sent all yet.

        Nobody waits here: a sender who is killed never sends the rest. A SuperLink that fails is
        asked again; one that refuses the part has no such message any more.
        """
        for part in letter.parts:
            if part not in letter.contents:
                try:
                    letter.contents[part] = self.fleet.pull(letter.run, part)
                except self.transfer.ObjectUnavailableError:
                    return False
                except LostError:
                    raise
                except Exception as error:
                    if failed(error):
                        return False
                    self.letters.remove(letter)
                    raise
        return True

    def _answer(self, letter: _Letter) -> None:
        run, name = letter.run, letter.name
        self.fleet.confirm(run, name)
        message = self.transfer.inflate_object_from_contents(name, letter.contents)
        message.metadata.__dict__["_message_id"] = name
        began = time.monotonic()
        reply = self._reply(message, run)
        with self.objects.no_object_id_recompute():
            reply.metadata.__dict__["_message_id"] = reply.object_id
            pieces = self.objects.get_all_nested_objects(reply)
            tree_of_reply = self.objects.get_object_tree(reply)
            needed, session = self.fleet.send(reply, tree_of_reply, time.monotonic() - began)
            self.transfer.push_objects(
                pieces,
                push_object_fn=lambda part, content: self.fleet.push(run, session, part, content),
                object_ids_to_push=needed,
            )

    def _reply(self, message: Any, run: int) -> Any:
        """What the app says; an error of the app is the reply that Flower has for it."""
        app = flower()
        context = app.Context(
            run_id=run, node_id=self.fleet.node_id, node_config=self.settings,
            state=app.RecordDict(), run_config={},
        )  # fmt: skip
        try:
            return self.app(message, context)
        except Exception as error:  # an owner's own code may fail in any way
            say(f"{type(error).__name__}: {error}")
            code = flower("flwr.common.constant").ErrorCode.CLIENT_APP_RAISED_EXCEPTION
            return app.Message(app.Error(code=code, reason=""), reply_to=message)


def read_certificates(path: Path | None) -> bytes | None:
    """The certificates in a file of PEM."""
    return None if path is None else _content(path)


def read_keys(path: Path | None) -> tuple[Any, Any] | None:
    """The private key in a file of OpenSSH, on an elliptic curve as Flower wants it, and the
    public one."""
    if path is None:
        return None
    flower()  # says so if it is not installed; the library of keys comes with it
    serialization = flower("cryptography.hazmat.primitives.serialization")
    try:
        key = serialization.load_ssh_private_key(_content(path), None)
    except ValueError as error:
        raise InputError(f"{path} has no private key of OpenSSH: {error}") from None
    curves = flower("cryptography.hazmat.primitives.asymmetric.ec")
    if not isinstance(key, curves.EllipticCurvePrivateKey):
        raise InputError(f"the key in {path} must be on an elliptic curve: ssh-keygen -t ecdsa")
    return key, key.public_key()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
