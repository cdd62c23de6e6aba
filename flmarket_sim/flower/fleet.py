"""A node's connection to a SuperLink, by Flower's Fleet API.

Flower's own connection sends its process the signal of Ctrl-C when the SuperLink does not know the
node any more, as after a restart of the SuperLink. This one raises `LostError`, so that its owner
can connect again.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from flmarket_sim.errors import FlmarketError
from flmarket_sim.flower.library import flower

HEARTBEAT = 20.0  # seconds between signs of life
LIFE = 30.0  # seconds that Flower is promised between them; it waits twice as long
RETRY = 30.0  # seconds for which a request is sent again when the network fails
FIRST, LAST = 0.5, 5.0  # seconds between them
BUSY = (502, 503, 504)  # status codes of a SuperLink that is there and cannot answer now
UNKNOWN = 401  # the status code when it does not know the node


class LostError(FlmarketError):
    """The SuperLink cannot be reached, or does not know this node any more."""


class Link(NamedTuple):
    """How to reach a SuperLink: its address, and how to know it. Without `certificates` the
    connection is not encrypted. `keys` are the node's own, for a SuperLink that knows its nodes."""

    address: str
    certificates: bytes | None = None
    keys: tuple[Any, Any] | None = None


class Fleet:
    """The connection of one node. `node_id` is her number in Flower."""

    def __init__(self, client: Any, stop: threading.Event) -> None:
        self._client, self._stop, self.lost = client, stop, False
        self.library = flower("flwr.supernode.fleet_http_connection")
        self._errors = flower("httpx")
        self._received: deque[tuple[Any, Any]] = deque()  # messages that came with earlier ones
        self.node_id = 0

    @property
    def _node(self) -> Any:
        return self.library.Node(node_id=self.node_id)

    def call(self, name: str, request: Any) -> Any:
        """The answer to a request; one that is lost in the network is sent again."""
        end, pause = time.monotonic() + RETRY, FIRST
        while True:
            try:
                return getattr(self._client, name)(request)
            except self._errors.HTTPStatusError as error:
                code = error.response.status_code
                self.lost = self.lost or code == UNKNOWN
                if code not in BUSY:
                    if self.lost:
                        raise LostError("the SuperLink does not know this node") from None
                    raise
                last: Exception = error
            except (self._errors.TransportError, ValueError) as error:
                last = error  # ValueError: what answers is no SuperLink
            if time.monotonic() > end or self._stop.wait(pause):
                self.lost = True
                raise LostError(f"the SuperLink does not answer ({last})") from None
            pause = min(2 * pause, LAST)

    def join(self, key: bytes, registers: bool) -> None:
        """Makes the node known, and present."""
        try:
            if registers:
                request = self.library.RegisterNodeFleetRequest(public_key=key)
                self.call("RegisterNode", request)
            request = self.library.ActivateNodeRequest(public_key=key, heartbeat_interval=LIFE)
            self.node_id = self.call("ActivateNode", request).node_id
        except self._errors.HTTPStatusError as error:
            words = error.response.text.strip()[:200] or str(error)
            raise LostError(f"the SuperLink refuses this node ({words})") from None

    def leave(self, registers: bool) -> None:
        """Says that the node is gone, if somebody hears it."""
        names = ["DeactivateNode", *(["UnregisterNode"] if registers else [])]
        requests = (self.library.DeactivateNodeRequest, self.library.UnregisterNodeFleetRequest)
        for name, request in zip(names, requests, strict=False):
            with suppress(self._errors.HTTPError, RuntimeError, ValueError):
                getattr(self._client, name)(request(node_id=self.node_id))

    def beat(self, left: threading.Event) -> None:
        """Signs of life until the node has left."""
        while not left.wait(HEARTBEAT):
            request = self.library.SendNodeHeartbeatRequest(
                node=self._node, heartbeat_interval=LIFE
            )
            try:
                if not self._client.SendNodeHeartbeat(request).success:
                    self.lost = True
            except self._errors.HTTPStatusError as error:
                self.lost = self.lost or error.response.status_code == UNKNOWN
            except (self._errors.HTTPError, ValueError):
                pass  # the next request says whether the SuperLink is there

    def receive(self) -> tuple[Any, Any] | None:
        """A message and the tree of its parts, if there is one."""
        if self.lost:
            raise LostError("the SuperLink does not know this node")
        if self._received:
            return self._received.popleft()
        try:
            answer = self.call("PullMessages", self.library.PullMessagesRequest(node=self._node))
        except self._errors.HTTPStatusError as error:
            raise LostError(f"the SuperLink gives this node no messages ({error})") from None
        heads = map(self.library.message_from_proto, answer.messages_list)
        self._received += zip(heads, answer.message_object_trees, strict=True)
        return self._received.popleft() if self._received else None

    def send(self, message: Any, tree: Any, seconds: float) -> tuple[set[str], str]:
        """Sends a reply without its parts; returns those that are needed, and for which session."""
        head = self.library.remove_content_from_message(message)
        answer = self.call(
            "PushMessages",
            self.library.PushMessagesRequest(
                node=self._node,
                messages_list=[self.library.message_to_proto(head)],
                message_object_trees=[tree],
                clientapp_runtime_list=[seconds],
            ),
        )
        return set(answer.objects_to_push), answer.session_id

    def pull(self, run: int, part: str) -> bytes:
        made = self.library.make_pull_object_fn_protobuf(self._named("PullObject"), self._node, run)
        content: bytes = made(part)
        return content

    def push(self, run: int, session: str, part: str, content: bytes) -> None:
        push = self._named("PushObject")
        self.library.make_push_object_fn_protobuf(push, self._node, run, session)(part, content)

    def confirm(self, run: int, name: str) -> None:
        """Says that a message has arrived."""
        confirm = self._named("ConfirmMessageReceived")
        self.library.make_confirm_message_received_fn_protobuf(confirm, self._node, run)(name)

    def _named(self, name: str) -> Callable[[Any], Any]:
        return lambda request: self.call(name, request)


def _fresh_keys() -> tuple[Any, Any]:
    """Keys for one connection. Every request is signed, and on this curve that costs a tenth of
    what it costs on Flower's own."""
    curves = flower("cryptography.hazmat.primitives.asymmetric.ec")
    private = curves.generate_private_key(curves.SECP256R1())
    return private, private.public_key()


def failed(error: Exception) -> bool:
    """Whether a SuperLink failed with a request, and may answer it another time."""
    response = getattr(error, "response", None)
    return response is not None and response.status_code >= 500


@contextmanager
def connected(link: Link, stop: threading.Event) -> Iterator[Fleet]:
    """A connection as long as the block lasts. Raises LostError if there is none."""
    library = flower("flwr.supernode.fleet_http_connection")
    registers = link.keys is None
    private, public = link.keys or _fresh_keys()
    interceptors = [
        library.RuntimeVersionHttpInterceptor(component_name="SuperNode"),
        library.NodeAuthHttpInterceptor(private, public),
    ]
    insecure = link.certificates is None
    with library.FleetHttpClient.from_server_address(
        link.address, insecure, link.certificates, interceptors=interceptors
    ) as client:
        fleet, left = Fleet(client, stop), threading.Event()
        fleet.join(library.public_key_to_bytes(public), registers)
        beating = threading.Thread(target=fleet.beat, args=(left,), daemon=True)
        beating.start()
        try:
            yield fleet
        finally:
            left.set()
            if not fleet.lost:
                fleet.leave(registers)
