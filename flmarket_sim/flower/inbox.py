"""The server's inbox on disk: what came from outside since the last checkpoint.

A round is a function of the checkpoint before it and of what came from outside: replies, the
moments at which they came, and ends of waiting. All that is on disk before anything follows from
it. So a server that was killed computes the round again from its inbox, to the same events, and
then goes on waiting; nothing is lost, and nothing happens twice.

An entry is one line: a CRC-32, and JSON in which bytes are hexadecimal, in a table of their own. A
ConfigRecord has no tables, so no client can write one. The first entry names the round. The inbox
ends before the first line that is not whole, which only a kill can leave.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from flmarket_sim.storage.atomic_files import append_to, write_whole

NAME = "inbox.log"
Entry = dict[str, Any]


class StoredInbox:
    """Entries of the round at hand: those of an earlier process first, then new ones.

    found  whether an earlier process has left any
    """

    def __init__(self, run: Path) -> None:
        self.path = run / NAME
        self._earlier: list[Entry] = []
        self._stored = _read(self.path) if self.path.exists() else []
        self.found = bool(self._stored)

    def begin(self, buyer: int, number: int) -> None:
        """Begins a round, or continues it if the inbox on disk is of this round."""
        first = {"kind": "round", "buyer": buyer, "round": number}
        if self._stored and self._stored[0] == first:
            self._earlier, self._stored = self._stored[1:], []
            kept = [first, *self._earlier]  # without a last line that was not whole
        else:
            self._earlier, self._stored, kept = [], [], [first]
        text = b"".join(map(_line, kept))
        write_whole(self.path, lambda fresh: fresh.write_bytes(text))

    @property
    def repeating(self) -> bool:
        """Whether entries of an earlier process are left."""
        return bool(self._earlier)

    def next(self) -> Entry:
        """The next entry of an earlier process."""
        return self._earlier.pop(0)

    def add(self, *entries: Entry) -> None:
        """Puts new entries on the disk."""
        with append_to(self.path) as file:
            file.write(b"".join(map(_line, entries)))
            os.fsync(file.fileno())


def _line(entry: Entry) -> bytes:
    text = json.dumps(entry, separators=(",", ":"), default=_hexadecimal).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    raise TypeError(f"{type(value).__name__} in an entry")


def _read(path: Path) -> list[Entry]:
    entries = []
    for line in path.read_bytes().split(b"\n"):
        check, _, text = line.partition(b" ")
        if check != f"{zlib.crc32(text):08x}".encode() or not text:
            break
        entries.append(_entry(json.loads(text)))
    return entries


def _entry(stored: Entry) -> Entry:
    """An entry as it was before it was written. Only values of its record `plain` may be bytes."""
    if "plain" in stored:
        stored["plain"] = {key: _value(value) for key, value in stored["plain"].items()}
    return stored


def _value(stored: Any) -> Any:
    """A value of a ConfigRecord: a number, a text, bytes, or a list of one kind."""
    if isinstance(stored, list):
        return [_value(one) for one in stored]
    return bytes.fromhex(stored["hex"]) if isinstance(stored, dict) else stored
