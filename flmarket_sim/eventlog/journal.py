"""The journal keeps events on disk until a part contains them.

`journal-N` has the events that will be in the parts of number N. It grows at the ends of rounds and
is deleted when its parts are written. It is a sequence of groups, each with the events of whole
rounds:

    "FLM2"  length (u64)  CRC-32 of the rest (u32)  CRC-32 of these numbers (u32)
    head  one Arrow IPC stream for each kind

The head is a line of JSON: {"seq": last event, "kinds": [[kind, bytes], ...]}. The journal ends
before the first group that is incomplete; a kill or a full disk can leave such a group. A group
that is damaged is another matter: readers refuse it, and a resumed run writes it again. (Journals
of earlier versions begin groups with "FLMJ", without a checksum of the numbers.)
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from flmarket_sim.errors import InputError, shortened
from flmarket_sim.eventlog.schema import arrow_schema
from flmarket_sim.storage.atomic_files import write_whole

HEAD = struct.Struct("<4sQI")
CHECKED = struct.Struct("<I")  # the checksum of the head
MAGIC, EARLIER = b"FLM2", b"FLMJ"
Batches = dict[str, list[pa.RecordBatch]]
APPEND = os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)  # Windows would change line ends
SYNC = getattr(os, "fdatasync", os.fsync)  # Windows and macOS have only fsync
ALONE = pa.ipc.IpcReadOptions(use_threads=False)  # arrow_memory.py says why
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class JournalContent(NamedTuple):
    """The content of a journal: the number of its last event, and batches by kind."""

    seq: int
    batches: Batches


def journals(folder: Path) -> dict[int, Path]:
    """The journals of a log by number, in order."""
    paths = {path.name.removeprefix("journal-"): path for path in folder.glob("journal-*")}
    return {int(number): paths[number] for number in sorted(paths) if number.isdigit()}


class DamagedGroupError(ValueError):
    """A group is there, and is not what was written."""


def read_journal(path: Path, until: int | None = None, strict: bool = False) -> JournalContent:
    """Reads the complete groups of a journal, without the events after number `until`.

    A damaged group ends the journal; it is refused if the reader is `strict`.
    """
    content = memoryview(path.read_bytes())
    place, seq = 0, 0
    batches: Batches = {}
    while until is None or seq < until:
        try:
            group = _group(content, place)
        except DamagedGroupError as error:
            if strict:
                raise InputError(
                    f"{path} is damaged ({error}). `flmarket resume` on the run's directory writes "
                    "these events anew; if that names the file too, delete it and resume again"
                ) from None
            break
        if group is None:
            break
        place, seq, in_group = group
        for kind, more in in_group.items():
            batches.setdefault(kind, []).extend(more)
    if until is not None and seq > until:
        batches = {kind: [_cut(batch, until) for batch in full] for kind, full in batches.items()}
        seq = until
    filled = {kind: [batch for batch in full if len(batch)] for kind, full in batches.items()}
    return JournalContent(seq, {kind: full for kind, full in filled.items() if full})


def read_after(
    path: Path, place: int, wanted: Callable[[str, int], bool]
) -> tuple[int, JournalContent]:
    """The complete groups from a place on, and where they end. The writer is not disturbed.

    `wanted(kind, bytes)` says which kinds of events are decoded; the others are skipped.
    """
    with path.open("rb") as file:
        file.seek(place)
        content = memoryview(file.read())
    end, seq = 0, 0
    batches: Batches = {}
    with suppress(DamagedGroupError):
        while (group := _group(content, end, wanted)) is not None:
            end, seq, in_group = group
            for kind, more in in_group.items():
                batches.setdefault(kind, []).extend(more)
    return place + end, JournalContent(seq, batches)


class Journal:
    """Writes the journals of a log, one after the other.

    A resumed run writes its log again and finds a journal with later events than its own. That
    journal stays until the run has passed it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = -1
        self.seq = 0
        self._file: int | None = None

    def append(self, number: int, seq: int, fresh: Batches, everything: Batches) -> None:
        """Makes the events up to `seq`, which belong to part `number`, safe on disk.

        `fresh` are the events since the last call, `everything` those since the last part.
        """
        path = self.folder / f"journal-{number:05d}"
        if number != self.number:
            self._close()
            self.number, self.seq = number, read_journal(path).seq if path.exists() else 0
        if seq <= self.seq:
            return
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            whole = _encoded(seq, everything)
            write_whole(path, lambda hidden: hidden.write_bytes(whole))
            self._file = os.open(path, APPEND)
        else:
            self._add(_encoded(seq, fresh))
        self.seq = seq

    def remove(self, numbers: Any) -> None:
        """Deletes the journals of these numbers."""
        if self.number in numbers:
            self._close()
        for number, path in journals(self.folder).items():
            if number in numbers:
                path.unlink(missing_ok=True)

    def close(self) -> None:
        self._close()

    def _add(self, group: bytes) -> None:
        assert self._file is not None
        before = os.fstat(self._file).st_size
        try:
            rest = memoryview(group)
            while rest:
                rest = rest[os.write(self._file, rest) :]
            SYNC(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self.number = None, -1


def _encoded(seq: int, batches: Batches) -> bytes:
    streams = []
    for kind, of_kind in batches.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, of_kind[0].schema, options=COMPRESSED) as stream:
            for batch in of_kind:
                stream.write_batch(batch)
        streams.append((kind, sink.getvalue()))
    head = {"seq": seq, "kinds": [[kind, stream.size] for kind, stream in streams]}
    payload = b"".join(
        [json.dumps(head).encode() + b"\n", *(stream.to_pybytes() for _, stream in streams)]
    )
    return packed(payload)


def packed(payload: bytes) -> bytes:
    """A group: its content after its length and checksums."""
    head = HEAD.pack(MAGIC, len(payload), zlib.crc32(payload))
    return head + CHECKED.pack(zlib.crc32(head)) + payload


def payload_at(content: memoryview, place: int) -> memoryview | None:
    """The content of the group at a place; None if the group is cut off."""
    left = len(content) - place
    if left < HEAD.size + CHECKED.size:
        return None
    magic, length, checksum = HEAD.unpack_from(content, place)
    start = place + HEAD.size
    if magic == MAGIC:
        if CHECKED.unpack_from(content, start)[0] != zlib.crc32(content[place:start]):
            raise DamagedGroupError("the head of a group does not have its checksum")
        start += CHECKED.size
    elif magic != EARLIER:
        if not any(content[place:]):  # a power cut can leave zeros
            return None
        raise DamagedGroupError("a group does not begin as groups do")
    payload = content[start : start + length]
    if len(payload) != length:
        return None
    if zlib.crc32(payload) != checksum:
        raise DamagedGroupError("a group does not have its checksum")
    return payload


def _group(
    content: memoryview, place: int, wanted: Callable[[str, int], bool] | None = None
) -> tuple[int, int, Batches] | None:
    """The end of the group at a place, its last event, and its batches; None if incomplete."""
    payload = payload_at(content, place)
    if payload is None:
        return None
    extra = CHECKED.size if content[place : place + len(MAGIC)] == MAGIC else 0
    try:
        line = bytes(payload[: bytes(payload[: 2**16]).index(b"\n") + 1])
        head, start = json.loads(line), len(line)
        batches: Batches = {}
        for kind, size in head["kinds"]:
            if wanted is not None and not wanted(kind, size):
                start += size
                continue
            stream = pa.py_buffer(payload[start : start + size])
            table = pa.ipc.open_stream(stream, options=ALONE).read_all()
            table.validate(full=True)
            if not table.schema.equals(arrow_schema(kind, ())) or table.column("seq").null_count:
                raise DamagedGroupError(f"events of kind {kind!r} have other columns")
            batches[kind] = table.to_batches()
            start += size
        return place + HEAD.size + extra + len(payload), int(head["seq"]), batches
    except (
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        OSError,
        pa.ArrowException,
    ) as error:
        raise DamagedGroupError(shortened(str(error))) from None


def _cut(batch: pa.RecordBatch, until: int) -> pa.RecordBatch:
    return batch.slice(0, int(np.searchsorted(batch.column("seq").to_numpy(), until, side="right")))
