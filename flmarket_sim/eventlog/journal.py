"""The events that are in no part yet, on disk: appended at the ends of rounds, gone when their part is written.

`journal-N` has what will be in the parts of number N. It is a row of groups, each the events of some whole rounds:

    "FLMJ"  length (u64)  CRC-32 (u32)  {"seq": last event, "kinds": [[kind, bytes], ...]} newline, an Arrow IPC stream a kind

A group that is not whole, or not of our events, ends the journal: a kill or a full disk leaves the first.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from flmarket_sim.eventlog.schema import arrow_schema
from flmarket_sim.storage.atomic_files import write_whole

HEAD = struct.Struct("<4sQI")
MAGIC = b"FLMJ"
Batches = dict[str, list[pa.RecordBatch]]
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


class Read(NamedTuple):
    """What a journal has: the last event, and batches by kind."""

    seq: int
    batches: Batches


def journals(folder: Path) -> dict[int, Path]:
    """The journals of a log by number, in order."""
    found = {path.name.removeprefix("journal-"): path for path in folder.glob("journal-*")}
    return {int(number): found[number] for number in sorted(found) if number.isdigit()}


def read_journal(path: Path, until: int | None = None) -> Read:
    """The whole groups of a journal; `until` leaves out all events after that one."""
    content = memoryview(path.read_bytes())
    place, seq = 0, 0
    batches: Batches = {}
    while until is None or seq < until:
        group = _group(content, place)
        if group is None:
            break
        place, seq, found = group
        for kind, more in found.items():
            batches.setdefault(kind, []).extend(more)
    if until is not None and seq > until:
        batches = {kind: [_cut(batch, until) for batch in found] for kind, found in batches.items()}
        seq = until
    return Read(
        seq,
        {kind: kept for kind, found in batches.items() if (kept := [b for b in found if len(b)])},
    )


class Journal:
    """Writes the journals of a log, one after the other.

    A log that is written a second time (a resumed run) finds a journal that is ahead of it. That one stays until there is more to say.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = -1
        self.seq = 0
        self._file: int | None = None

    def append(self, number: int, seq: int, fresh: Batches, everything: Batches) -> None:
        """All events up to `seq` of part `number` are safe afterwards: `fresh` since the last call, `everything` since the last part."""
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
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        else:
            self._add(_encoded(seq, fresh))
        self.seq = seq

    def remove(self, numbers: Any) -> None:
        """These journals are not needed any more."""
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
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self.number = None, -1


def _encoded(seq: int, batches: Batches) -> bytes:
    streams = []
    for kind, found in batches.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found[0].schema, options=COMPRESSED) as stream:
            for batch in found:
                stream.write_batch(batch)
        streams.append((kind, sink.getvalue()))
    said = {"seq": seq, "kinds": [[kind, stream.size] for kind, stream in streams]}
    payload = b"".join(
        [json.dumps(said).encode() + b"\n", *(stream.to_pybytes() for _, stream in streams)]
    )
    return HEAD.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload


def _group(content: memoryview, place: int) -> tuple[int, int, Batches] | None:
    """Where the group at a place ends, its last event, and its batches; None if it is not whole."""
    if len(content) - place < HEAD.size:
        return None
    magic, length, checksum = HEAD.unpack_from(content, place)
    payload = content[place + HEAD.size : place + HEAD.size + length]
    if magic != MAGIC or len(payload) != length or zlib.crc32(payload) != checksum:
        return None
    try:
        line = bytes(payload[: bytes(payload[: 2**16]).index(b"\n") + 1])
        said, start = json.loads(line), len(line)
        batches: Batches = {}
        for kind, size in said["kinds"]:
            table = pa.ipc.open_stream(pa.py_buffer(payload[start : start + size])).read_all()
            table.validate(full=True)
            if not table.schema.equals(arrow_schema(kind, ())) or table.column("seq").null_count:
                return None
            batches[kind] = table.to_batches()
            start += size
        return place + HEAD.size + length, int(said["seq"]), batches
    except (
        ValueError,
        KeyError,
        TypeError,
        OverflowError,
        RecursionError,
        OSError,
        pa.ArrowException,
    ):
        return None


def _cut(batch: pa.RecordBatch, until: int) -> pa.RecordBatch:
    return batch.slice(0, int(np.searchsorted(batch.column("seq").to_numpy(), until, side="right")))
