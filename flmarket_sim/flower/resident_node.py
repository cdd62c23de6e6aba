"""A node of Flower that lives in one process: it answers messages with its own ClientApp.

Flower's SuperNode starts a process for every message, and runs the code that comes with the run. A
resident node speaks the same protocol to the same SuperLink (the Fleet API), but keeps its process,
and runs the code on its own disk whatever a run brings along.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from flmarket_sim.errors import InputError
from flmarket_sim.flower.library import flower

SHORTEST, LONGEST = 0.1, 1.0  # seconds between looks for messages
GROWTH = 1.3
PATIENCE = 10.0  # times what a look takes: a SuperLink with much to do is asked less often


class Link(NamedTuple):
    """How to reach a SuperLink: its address, and how to know it. Without `certificates` the
    connection is not encrypted. `keys` are the node's own, for a SuperLink that knows its nodes."""

    address: str
    certificates: bytes | None = None
    keys: tuple[Any, Any] | None = None


def stay(
    link: Link, app: Any, settings: Mapping[str, Any], stop: threading.Event, patience: float = 60.0
) -> None:
    """Answers messages until `stop`. `settings` are the node_config of its contexts.

    A SuperLink that cannot be reached for `patience` seconds at the beginning ends the process.
    """
    connect = flower("flwr.supernode.fleet_http_connection").http_request_response
    with connect(
        link.address, link.certificates is None, link.certificates, link.keys, None, patience
    ) as connection:
        node, pause = _Node(connection, app, settings), SHORTEST
        while not stop.is_set():
            began = time.monotonic()
            if node.answer_one():
                pause = SHORTEST
            else:
                stop.wait(max(pause, PATIENCE * (time.monotonic() - began)))
                pause = min(GROWTH * pause, LONGEST)


class _Node:
    """One connection to a SuperLink, and the app behind it."""

    def __init__(self, connection: Any, app: Any, settings: Mapping[str, Any]) -> None:
        self.node_id, self.receive, self.send, _, _, self.pull, self.push, self.confirm = connection
        self.app, self.settings = app, dict(settings)
        self.objects = flower("flwr.supercore.inflatable.inflatable_object")
        self.transfer = flower("flwr.supercore.inflatable.inflatable_utils")
        self.failures = (
            flower("httpx").HTTPError,
            flower("flwr.supercore.run").RunNotRunningException,
        )

    def answer_one(self) -> bool:
        """Answers a message if there is one. A message that is lost on the way is not answered."""
        try:
            received = self.receive()
            if received is None:
                return False
            self._answer(*received)
        except self.failures as error:
            print(f"flmarket: a message was lost: {error}", file=sys.stderr, flush=True)
        return True

    def _answer(self, head: Any, tree: Any) -> None:
        run, name = head.metadata.run_id, head.metadata.message_id
        parts = [part.object_id for part in self.objects.iterate_object_tree(tree)]
        contents = self.transfer.pull_objects(
            parts, pull_object_fn=lambda part: self.pull(run, part)
        )
        self.confirm(run, name)
        message = self.transfer.inflate_object_from_contents(name, contents)
        message.metadata.__dict__["_message_id"] = name
        began = time.monotonic()
        reply = self._reply(message, run)
        with self.objects.no_object_id_recompute():
            reply.metadata.__dict__["_message_id"] = reply.object_id
            pieces = self.objects.get_all_nested_objects(reply)
            tree_of_reply = self.objects.get_object_tree(reply)
            needed, session = self.send(reply, tree_of_reply, time.monotonic() - began)
            self.transfer.push_objects(
                pieces,
                push_object_fn=lambda part, content: self.push(run, session, part, content),
                object_ids_to_push=needed,
            )

    def _reply(self, message: Any, run: int) -> Any:
        """What the app says; an error of the app is the reply that Flower has for it."""
        app = flower()
        context = app.Context(
            run_id=run, node_id=self.node_id, node_config=self.settings,
            state=app.RecordDict(), run_config={},
        )  # fmt: skip
        try:
            return self.app(message, context)
        except Exception as error:  # an owner's own code may fail in any way
            print(f"flmarket: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
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
