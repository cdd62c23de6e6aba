"""A canonical digest of whatever a reader returns: equal content has equal digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa


def digest(value: Any) -> str:
    hashed = hashlib.sha256()
    for piece in _pieces(value):
        hashed.update(piece)
        hashed.update(b"\0")
    return hashed.hexdigest()


def chain(tables: Mapping[str, pa.Table]) -> tuple[str, ...]:
    """A digest after each event of a log. The chain of a log's beginning begins its chain.

    An event that is missing before others breaks the chain, because every link has its number.
    """
    events = sorted(
        ((row["seq"], kind, row) for kind, table in tables.items() for row in table.to_pylist()),
        key=lambda event: event[:2],
    )
    links, before = [], ""
    for place, event in enumerate(events, 1):
        before = digest([before, place == event[0], event])
        links.append(before)
    return tuple(links)


def files_of(folder: Path) -> dict[str, str]:
    """The digest of every file in a folder, by its name there."""
    return {
        path.relative_to(folder).as_posix(): digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _pieces(value: Any) -> Iterator[bytes]:
    """Unambiguous bytes: every container says its kind and its length."""
    if isinstance(value, pa.Table):
        yield b"table"
        yield from _pieces([(field.name, str(field.type)) for field in value.schema])
        yield from _pieces(value.to_pylist())
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for key in sorted(value, key=repr):
            yield from _pieces(key)
            yield from _pieces(value[key])
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}".encode()
        for each in value:
            yield from _pieces(each)
    elif isinstance(value, np.ndarray):
        yield f"array {value.dtype} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        yield from _pieces({each.name: getattr(value, each.name) for each in fields(value)})
    elif isinstance(value, bytes):
        yield b"bytes"
        yield value
    elif isinstance(value, str):
        yield b"text"
        yield value.encode("utf-8", "surrogatepass")
    else:
        yield f"{type(value).__name__} {value!r}".encode()
