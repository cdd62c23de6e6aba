"""New numbers of owners and new places of events in a view, so that neither says more than it has.

An owner's number in the log says whom the seed chose, and which names are one person's. In a view,
owners have numbers in an order that depends on a secret of the run, which is no part of any view.
The secret is kept beside run.json, so that a view of the same participant can be made again with
the same numbers. Two participants have different numbers for an owner.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.participants import Participant
from flmarket_sim.eventlog.record import Role
from flmarket_sim.eventlog.run_info import identity
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.sealed_files import check_seal, sealed
from flmarket_sim.storage.untrusted_files import read_json

KEY_FILE = "view.key"
KEY_BYTES = 32
ANEW = "Delete it, and the next view draws a new one, with other numbers for all owners"
Ints = NDArray[np.int64]


def view_key(run: Path, info: Mapping[str, Any]) -> bytes:
    """The secret of the views of a run: drawn from the operating system at the first view.

    The file says of which run it is and has a hash, so that neither damage nor the secret of
    another run gives the owners other numbers in silence. A folder that cannot be written to keeps
    no secret, and every view of it has numbers of its own.
    """
    path = run / KEY_FILE
    try:
        kept = read_json(path)
    except FileNotFoundError:
        key = secrets.token_bytes(KEY_BYTES)
        with suppress(OSError):
            write_key(run, info, key)
        return key
    check_seal(path, kept, ANEW, needed=True)
    if kept.get("run") != identity(info):
        raise InputError(f"{path} is the key of another run. {ANEW}")
    return bytes.fromhex(kept["key"])


def write_key(run: Path, info: Mapping[str, Any], key: bytes) -> None:
    """Keeps a secret for the views of a run, in place of the one that it may have."""
    content = sealed({"run": identity(info), "key": key.hex()})
    write_text(run / KEY_FILE, json.dumps(content) + "\n")


def new_numbers(names: set[int], viewer: Participant, key: bytes) -> dict[int, int]:
    """New numbers of the owners (and names of owners) with these numbers.

    An owner keeps her own numbers in her own view.
    """
    own: set[int] = set()
    if viewer.role == Role.OWNER:
        column = np.array(sorted(names), np.int32)
        own = set(column[viewer.is_in(column)].tolist())

    def lot(name: int) -> bytes:
        return hmac.digest(key, f"{viewer.role} {viewer.number} {name}".encode(), "sha256")

    others = sorted((name for name in names - own if name >= 0), key=lot)
    free = (number for number in range(len(names) + len(own)) if number not in own)
    return dict(zip(others, free, strict=False)) | {name: name for name in own if name >= 0}


class Places(NamedTuple):
    """Places of events in the log, ascending, and in a view."""

    old: NDArray[np.uint64]
    new: NDArray[np.uint64]

    def of(self, old: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return self.new[np.searchsorted(self.old, old)]


class SeenEvents(NamedTuple):
    """Columns of the events that a participant sees: place in the log, time, round, a number for
    the kind, sender and receiver."""

    seq: NDArray[np.uint64]
    time: NDArray[np.float64]
    round: Ints
    kind: Ints
    sender: Ints
    receiver: Ints


def new_places(seen: SeenEvents, numbers: dict[int, int]) -> Places:
    """Places from 1 on, without the gaps of what she does not see.

    Events of one kind that happen in one moment of a round are in the order of the new numbers: in
    the log they are in the order of the old ones.
    """
    order = np.lexsort((seen.seq, seen.kind, seen.round, seen.time))
    same = np.ones(max(len(order) - 1, 0), bool)
    for column in (seen.kind, seen.round, seen.time):
        same &= column[order][1:] == column[order][:-1]
    starts = np.flatnonzero(np.r_[np.full(min(len(order), 1), True), ~same])
    length = np.diff(np.r_[starts, len(order)])
    first = np.empty(len(order), np.uint64)
    first[order] = np.repeat(seen.seq[order][starts], length)
    shown = [renumbered(column, numbers) for column in (seen.receiver, seen.sender)]
    mixed = np.lexsort((seen.seq, *shown, first))
    place = np.empty(len(order), np.uint64)
    place[mixed] = np.arange(1, len(order) + 1, dtype=np.uint64)
    ascending = np.argsort(seen.seq, kind="stable")
    return Places(seen.seq[ascending], place[ascending])


def renumbered(column: Ints, numbers: dict[int, int]) -> Ints:
    """A column of participants with the new numbers of owners."""
    old, place = np.unique(column, return_inverse=True)
    new = np.array([numbers.get(number, number) for number in old.tolist()], np.int64)
    return np.asarray(new[place.reshape(column.shape)]) if len(old) else column
