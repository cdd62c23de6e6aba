"""The broker's post: requests to owners over a Grid of Flower, and their replies by a deadline."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from flmarket_sim.eventlog.schema import LateMessage
from flmarket_sim.flower.client import content_of
from flmarket_sim.flower.inbox import Entry, StoredInbox
from flmarket_sim.flower.library import flower
from flmarket_sim.flower.messages import RECORD, Hello, MessageError, Present, Wire
from flmarket_sim.storage.atomic_files import write_text

Reply = TypeVar("Reply", bound=Wire)
CLIENTS = "clients.json"
GREETING = 5.0  # seconds for which others wait until a client has said who she is
LOOK_AROUND = 1.0  # seconds between looks at who is connected
AGAIN = 10.0  # seconds after which a node is greeted again whom nobody knows
SELDOM = 16  # times as long, at most, between greetings of a node that does not answer
SHORTEST, LONGEST = 0.02, 0.25  # seconds between looks into the letter box
GONE = (5,)  # error codes of Flower: the node of the receiver is not there any more
LASTING = 86_400.0  # seconds that a request may stay unanswered in Flower


class Sent(NamedTuple):
    """A request under way: to whom, in which round, and what its reply is if it comes too late.

    `turn` counts the calls of `ask`.
    """

    turn: int
    owner: int
    node: int
    buyer: int
    round: int
    kind: LateMessage | None


class Late(NamedTuple):
    """A reply after its deadline."""

    owner: int
    time: float
    buyer: int
    round: int
    kind: LateMessage


class TimelyReply(NamedTuple, Generic[Reply]):
    """A reply in time."""

    owner: int
    time: float
    reply: Reply


class Post:
    """Sends requests and collects replies; all that arrives is in the inbox first.

    `origin` is the moment (seconds since 1970) that is time 0 of the run's log. `owners` is how
    many owners the market has; `on_late` hears of replies after their deadline.
    """

    def __init__(
        self,
        grid: Any,
        inbox: StoredInbox,
        run: str,
        folder: Path,
        owners: int,
        origin: float,
        on_late: Callable[[Late], None],
    ) -> None:
        self.grid, self.inbox, self.run, self.owners = grid, inbox, run, owners
        self.origin, self.on_late, self.in_flower = origin, on_late, 0.0
        self._path = folder / CLIENTS
        self._numbers: dict[str, int] = (
            json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        )
        self._nodes: dict[int, int] = {}  # node of each owner who is connected
        self._greeted: dict[int, float] = {}  # nodes, and when they are greeted again
        self._came: dict[int, float] = {}  # nodes, and when they were greeted first
        self._told: set[tuple[int, str]] = set()
        self._hellos: dict[str, int] = {}
        self._sent: dict[str, Sent] = {}
        self._looked = self._last = 0.0
        self._after_a_kill = inbox.found  # until something is asked by this process
        self._turn = 0
        self._silent: set[int] = set()

    @property
    def names(self) -> dict[int, str]:
        """The names of the owners who have ever been there, by their numbers."""
        return {number: name for name, number in self._numbers.items()}

    def moment(self) -> float:
        """Now, in seconds since the run began; never earlier than before."""
        if self.inbox.repeating:
            self._last = float(self.inbox.next()["time"])
        else:
            self.inbox.add({"kind": "moment", "time": self._now()})
        return self._last

    def gather(self, wanted: int, patience: float) -> int:
        """Waits until so many owners are connected, at most `patience` seconds. Returns how many
        there are."""
        end = time.monotonic() + patience
        while len(self._nodes) < wanted and time.monotonic() < end:
            self._collect_late()
            self._look_around()
            self._pause(SHORTEST)
        return len(self._nodes)

    def ask(
        self,
        requests: Mapping[int, Wire],
        reply: type[Reply],
        seconds: float,
        kind: LateMessage | None,
        key: tuple[int, int],
        hear: Callable[[TimelyReply[Reply]], None],
    ) -> float:
        """Sends requests of the round `key` = (buyer, round) to owners by number, and hands their
        replies to `hear` as they arrive.

        It ends when all owners who are connected have replied, or after `seconds`; later replies
        are late, as what `kind` says. Returns the moment of the end. A server that was killed while
        it waited asks those again whose replies it does not have, and waits anew, also for nodes
        that have not said yet who they are: an owner who computes says nothing meanwhile.
        """
        waiting = dict(requests)
        self._turn += 1

        def take(entry: Entry) -> None:
            self._last = float(entry["time"])
            if entry["kind"] == "late":
                self._hear_late([entry])
                return
            asked_for = waiting.pop(entry["owner"], None) is not None
            if asked_for and entry["kind"] == "reply":
                try:
                    arrived = reply.of(entry["plain"])
                except MessageError:
                    return  # a reply that is none
                hear(TimelyReply(entry["owner"], self._last, arrived))

        while self.inbox.repeating:
            entry = self.inbox.next()
            if entry["kind"] == "closed":
                self._last = float(entry["time"])
                return self._last
            take(entry)
        end, pause = time.monotonic() + seconds, SHORTEST
        after_a_kill, self._after_a_kill = self._after_a_kill, False
        asked: dict[int, int] = {}  # owners and the nodes at which they were asked
        self._looked = 0.0
        while waiting:
            self._look_around()
            asked = {owner: node for owner, node in asked.items() if self._nodes.get(owner) == node}
            unsent = {
                owner: request
                for owner, request in waiting.items()
                if (node := self._nodes.get(owner)) is not None and asked.get(owner) != node
            }
            asked |= self._send(unsent, kind, key)
            entries = self._collect(waiting)
            if entries:
                self.inbox.add(*entries)
                for entry in entries:
                    take(entry)
            reachable = [owner for owner in waiting if self._nodes.get(owner) is not None]
            expected = self._hellos if after_a_kill else self._expects_names()
            if time.monotonic() >= end or not (reachable or expected):
                break
            soonest = min(SHORTEST * len(waiting), LONGEST)  # each look costs Flower some time
            pause = soonest if entries else min(1.5 * pause, LONGEST)
            if waiting:
                self._pause(pause)
        self._silent |= set(waiting)
        self.inbox.add({"kind": "closed", "time": self._now()})
        return self._last

    def _expects_names(self) -> bool:
        """Whether somebody who has just come has not said yet who she is."""
        fresh = time.monotonic() - GREETING
        return any(self._came.get(node, 0.0) > fresh for node in self._hellos.values())

    def tell(self, requests: Mapping[int, Wire], seconds: float) -> None:
        """Sends requests whose replies change nothing, and waits for them, at most `seconds`.

        Nobody waits for an owner who has not replied to what she was asked last. Replies to earlier
        requests are late.
        """
        while self.inbox.repeating:
            self._hear_late([self.inbox.next()])
        if not set(requests) <= set(self._nodes):  # after a restart nobody has been greeted yet
            self.gather(self.owners, min(seconds, GREETING))
        waiting, end = dict(requests), time.monotonic() + seconds
        self._turn += 1
        self._look_around()
        self._send(waiting, None, (0, 0))
        waiting = {owner: one for owner, one in waiting.items() if owner not in self._silent}
        while waiting and time.monotonic() < end:
            for entry in self._collect_late(waiting):
                waiting.pop(entry["owner"], None)
            waiting = {owner: one for owner, one in waiting.items() if owner in self._nodes}
            self._pause(SHORTEST)

    def _collect_late(self, waiting: Mapping[int, Wire] | None = None) -> list[Entry]:
        """Looks into the letter box: what is late is heard at once; returns the other entries."""
        entries = self._collect(waiting)
        late = [entry for entry in entries if entry["kind"] == "late"]
        if late:
            self.inbox.add(*late)
            self._hear_late(late)
        return [entry for entry in entries if entry["kind"] != "late"]

    def _hear_late(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._last, place = float(entry["time"]), (entry["buyer"], entry["round"])
            self.on_late(Late(entry["owner"], self._last, *place, LateMessage(entry["late"])))

    def _now(self) -> float:
        self._last = max(self._last, time.time() - self.origin)
        return self._last

    @property
    def last(self) -> float:
        """The latest moment of the run."""
        return self._last

    def _flower(self, do: Callable[..., Any], *arguments: Any) -> Any:
        """Calls Flower, or waits; `in_flower` is the processor time that this takes."""
        began = time.process_time()
        try:
            return do(*arguments)
        finally:
            self.in_flower += time.process_time() - began

    def _pause(self, seconds: float) -> None:
        self._flower(time.sleep, seconds)

    def _look_around(self) -> None:
        """Greets nodes that nobody knows, and forgets those that are gone.

        A greeting can be lost with the run of a server that was killed, so it is repeated, less and
        less often.
        """
        if time.monotonic() - self._looked < LOOK_AROUND:
            return
        online = set(self._flower(self.grid.get_node_ids))
        self._looked = time.monotonic()
        self._nodes = {owner: node for owner, node in self._nodes.items() if node in online}
        self._hellos = {name: node for name, node in self._hellos.items() if node in online}
        self._greeted = {node: due for node, due in self._greeted.items() if node in online}
        self._came = {node: since for node, since in self._came.items() if node in online}
        fresh = [node for node in sorted(online) if self._greeted.get(node, 0.0) <= self._looked]
        for node in fresh:
            silent = self._looked - self._came.setdefault(node, self._looked)
            self._greeted[node] = self._looked + min(max(silent, AGAIN), SELDOM * AGAIN)
        hellos = [self._message(node, Hello(run=self.run), "") for node in fresh]
        if hellos:
            pushed = zip(self._flower(self.grid.push_messages, hellos), fresh, strict=True)
            self._hellos |= {name: node for name, node in pushed if name}

    def _message(self, node: int, record: Wire, group: str) -> Any:
        return flower().Message(
            content_of(record),
            dst_node_id=node,
            message_type=type(record).type,
            ttl=LASTING,
            group_id=group,
        )

    def _send(
        self, requests: Mapping[int, Wire], kind: LateMessage | None, key: tuple[int, int]
    ) -> dict[int, int]:
        """Sends requests to those who are connected; returns their nodes."""
        nodes = {owner: self._nodes[owner] for owner in requests if owner in self._nodes}
        if nodes:
            messages = [
                self._message(node, requests[owner], str(key[1])) for owner, node in nodes.items()
            ]
            pushed = self._flower(self.grid.push_messages, messages)
            for name, (owner, node) in zip(pushed, nodes.items(), strict=True):
                if name:
                    self._sent[name] = Sent(self._turn, owner, node, *key, kind)
        return nodes

    def _collect(self, waiting: Mapping[int, Wire] | None = None) -> list[Entry]:
        """Looks into the letter box: entries for replies to requests. Hellos are answered here."""
        entries: list[Entry] = []
        names = [*self._hellos, *self._sent]
        if not names:
            return entries
        for message in self._flower(self.grid.pull_messages, names):
            name = message.metadata.reply_to_message_id
            if name in self._hellos:
                self._welcome(self._hellos.pop(name), message)
            elif name in self._sent:
                entry = self._entry(self._sent.pop(name), message, waiting or {})
                entries += [] if entry is None else [entry]
        return entries

    def _welcome(self, node: int, message: Any) -> None:
        """Notes who is at a node. A name belongs to one node at a time, which was there first."""
        if not message.has_content() and message.error.code in GONE:
            self._forget(node)
            return
        try:
            owner = Present.of(_plain(message)) if message.has_content() else None
        except MessageError:
            owner = None
        if owner is None:
            self._refuse(node, "does not say who it is; its own output has the reason")
            return
        number = self._number(owner)
        if number is None:
            self._refuse(node, f"is {owner.name!r}, for whom the market has no place")
        elif self._nodes.get(number, node) != node:
            self._refuse(node, f"says that it is {owner.name!r}, who is at another node")
        else:
            self._nodes[number], self._greeted[node] = node, math.inf
            self._hellos = {name: other for name, other in self._hellos.items() if other != node}

    def _number(self, owner: Present) -> int | None:
        """The number that an owner has, or gets; None if there is no place for her."""
        number = self._numbers.get(owner.name)
        if number is None:
            taken = set(self._numbers.values())
            free = [owner.number] if owner.number is not None else range(self.owners)
            number = next((one for one in free if one not in taken and one < self.owners), None)
            if number is not None:
                self._numbers[owner.name] = number
                text = json.dumps(self._numbers, indent=2, ensure_ascii=False) + "\n"
                write_text(self._path, text)
        return number

    def _forget(self, node: int) -> None:
        """A node is gone; if it comes back, it is greeted at once."""
        self._greeted.pop(node, None)
        self._came.pop(node, None)

    def _refuse(self, node: int, why: str) -> None:
        """Says once why a node takes no part; it is greeted again later."""
        self._greeted[node] = time.monotonic() + AGAIN
        if (node, why) not in self._told:
            self._told.add((node, why))
            print(f"flmarket: node {node} {why}", flush=True)

    def _entry(self, sent: Sent, message: Any, waiting: Mapping[int, Wire]) -> Entry | None:
        """What the inbox gets of a message; None if it changes nothing."""
        now, current = self._now(), sent.turn == self._turn and sent.owner in waiting
        if not message.has_content():
            if message.error.code in GONE:
                if self._nodes.get(sent.owner) == sent.node:
                    del self._nodes[sent.owner]
                    self._forget(sent.node)
                return None
            return {"kind": "failed", "owner": sent.owner, "time": now} if current else None
        self._silent.discard(sent.owner)
        for name, other in list(self._sent.items()):  # she was asked at an earlier node, too
            if (other.turn, other.owner) == (sent.turn, sent.owner):
                del self._sent[name]
        if current:
            return {"kind": "reply", "owner": sent.owner, "time": now, "plain": _plain(message)}
        if sent.kind is None or sent.turn == self._turn:
            return None
        late = {"buyer": sent.buyer, "round": sent.round, "late": int(sent.kind)}
        return {"kind": "late", "owner": sent.owner, "time": now} | late


def _plain(message: Any) -> dict[str, Any]:
    return dict(message.content.config_records.get(RECORD, {}))
