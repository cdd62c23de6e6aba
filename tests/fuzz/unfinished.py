"""A run that was interrupted: its journal and its checkpoint, whole and damaged, read and gone on from."""

from __future__ import annotations

import io
import json
import random
import shutil
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import flmarket_sim as fm
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.eventlog.journal import CHECKED, HEAD, MAGIC, packed, payload_at
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.market import checkpoint
from flmarket_sim.scenario.scenario_file import build_scenario

from .folder_readers import SMALL, TABLE_CHANGES, FolderReader
from .mutations import NUMBERS, mutate_bytes, mutate_tree

MARKET = {key: value for key, value in SMALL.items() if key != "buyers"} | {"rounds": 6}
SOME = 32  # one input of so many is also gone on from: that simulates a market


class UnfinishedReader(FolderReader):
    """read_events, sql and resume, where a journal or a checkpoint is damaged."""

    name = "unfinished"

    def fill(self) -> None:
        before = parquet_log.EVENTS_PER_PART, checkpoint.SECONDS, checkpoint.SHARE
        parquet_log.EVENTS_PER_PART, checkpoint.SECONDS, checkpoint.SHARE = (
            50,
            0.0,
            1e9,
        )  # a part after two rounds
        try:
            fm.run(build_scenario(MARKET), self.folder, progress=_stop)
        except KeyboardInterrupt:
            pass
        finally:
            parquet_log.EVENTS_PER_PART, checkpoint.SECONDS, checkpoint.SHARE = before

    def make(self, rng: random.Random) -> bytes:
        name = rng.choice(
            [name for name in self.whole if name.endswith(".npz") or "journal" in name]
        )
        whole, others = self.whole[name], list(self.whole.values())
        if rng.random() < 0.4:
            content = mutate_bytes(whole, rng, others)
        else:
            content = (
                damaged_checkpoint(whole, rng)
                if name.endswith(".npz")
                else damaged_journal(whole, rng)
            )
        return name.encode() + b"\n" + content

    def look(self, damaged: Path) -> None:
        draw = zlib.crc32((self.folder / damaged).read_bytes())
        fm.read_events(self.folder, list(KINDS)[draw % len(KINDS)]).to_pylist()
        if draw % SOME == 1:
            fm.sql(self.folder, "SELECT * FROM bid").to_pylist()
        if damaged.suffix == ".npz":
            checkpoint.read_checkpoint(self.folder)
        if draw % SOME == 0:
            again = self.folder.with_name("again")
            shutil.rmtree(again, ignore_errors=True)
            shutil.copytree(self.folder, again)
            fm.resume(again)


def _stop(done: int, total: int) -> None:
    """After two more rounds, which are in the journal, each in a group of its own."""
    parquet_log.EVENTS_PER_PART = 50 if done < 2 else 10_000
    if done == 4:
        raise KeyboardInterrupt


def damaged_checkpoint(content: bytes, rng: random.Random) -> bytes:
    """An archive that is whole, of facts and arrays that are not."""
    with np.load(io.BytesIO(content)) as stored:
        arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    if rng.random() < 0.6:
        facts = mutate_tree(json.loads(arrays["facts"].tobytes()), rng, [])
        arrays["facts"] = np.frombuffer(_as_json(facts), np.uint8)
    else:
        name = rng.choice(list(arrays))
        arrays[name] = _other_array(arrays[name], rng)
    if rng.random() < 0.1:
        del arrays[rng.choice(list(arrays))]
    made = io.BytesIO()
    np.savez(made, **arrays)
    return made.getvalue()


def _other_array(array: Any, rng: random.Random) -> Any:
    numbers = [float(number) for number in NUMBERS if isinstance(number, float)]
    return rng.choice([
        lambda: array[:0], lambda: array[:-1], lambda: np.concatenate([array, array]), lambda: array.astype(str), lambda: array.reshape(-1, 1),
        lambda: np.array(rng.choice(numbers)), lambda: np.full(array.shape, rng.choice(numbers)), lambda: np.array([None, {}], object),
        lambda: array.astype(np.complex128), lambda: -array.astype(float), lambda: np.full(array.shape, 2**62), lambda: array.astype("M8[s]"),
    ])()  # fmt: skip


def damaged_journal(content: bytes, rng: random.Random) -> bytes:
    """Groups with the right checksum, of streams or a first line that are wrong."""
    groups, place = [], 0
    while place < len(content):
        payload = bytes(payload_at(memoryview(content), place))
        groups.append(payload)
        place += len(packed(payload))
    at = rng.randrange(len(groups))
    line, _, streams = groups[at].partition(b"\n")
    said = json.loads(line)
    if rng.random() < 0.5:
        groups[at] = _as_json(mutate_tree(said, rng, [])) + b"\n" + streams
    else:
        groups[at] = _other_stream(said, streams, rng)
    if rng.random() < 0.2:
        rng.shuffle(groups)
    return b"".join(_packed(group, rng) for group in groups)


def _other_stream(said: dict[str, Any], streams: bytes, rng: random.Random) -> bytes:
    """One kind of event with another table under its name, of the right length."""
    parts, start = [], 0
    for _, size in said["kinds"]:
        parts.append(streams[start : start + size])
        start += size
    at = rng.randrange(len(parts))
    if rng.random() < 0.3:
        parts[at] = mutate_bytes(parts[at], rng, parts)
    else:
        table = rng.choice(TABLE_CHANGES)(pa.ipc.open_stream(parts[at]).read_all(), rng)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        parts[at] = sink.getvalue().to_pybytes()
    kinds = [[kind, len(part)] for (kind, _), part in zip(said["kinds"], parts, strict=True)]
    return _as_json(said | {"kinds": kinds}) + b"\n" + b"".join(parts)


def _packed(group: bytes, rng: random.Random) -> bytes:
    length = len(group) if rng.random() < 0.97 else rng.choice([0, 1, 2**32, 2**63])
    try:
        head = HEAD.pack(MAGIC, length, zlib.crc32(group))
        return head + CHECKED.pack(zlib.crc32(head)) + group
    except struct.error:
        return group


def _as_json(tree: Any) -> bytes:
    try:
        return json.dumps(tree, default=str).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return b"[" * 100_000
