"""A TOML text of a tree, in one of the several ways that it can be written."""

from __future__ import annotations

import datetime
import math
import random
import re
from typing import Any

BARE = re.compile(r"^[A-Za-z0-9_-]+$")


def dump(tree: dict[str, Any], rng: random.Random) -> str:
    """Values first, then tables; tables in headers or inline, integers in decimal or hexadecimal."""
    lines: list[str] = []
    _table(tree, (), lines, rng)
    return "\n".join(lines) + "\n"


def _table(
    table: dict[str, Any], path: tuple[str, ...], lines: list[str], rng: random.Random
) -> None:
    later = []
    for key, inner in table.items():
        if (isinstance(inner, dict) and len(path) < 8 and rng.random() < 0.8) or (
            _tables(inner) and len(path) < 8 and rng.random() < 0.7
        ):
            later.append((key, inner))
        else:
            lines.append(f"{_key(key)} = {_value(inner, rng)}")
    for key, inner in later:
        name = ".".join(_key(part) for part in (*path, key))
        for one in inner if isinstance(inner, list) else [inner]:
            lines.append(f"[[{name}]]" if isinstance(inner, list) else f"[{name}]")
            _table(one, (*path, key), lines, rng)


def _tables(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(one, dict) for one in found)


def _value(found: Any, rng: random.Random) -> str:
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, int):
        decimal = abs(found) < 10**4000 and (
            found < 0 or rng.random() < 0.9
        )  # Python writes no longer ones
        return str(found) if decimal else f"{abs(found):#x}"
    if isinstance(found, float):
        return (
            str(found)
            if math.isfinite(found)
            else "nan"
            if found != found
            else "inf"
            if found > 0
            else "-inf"
        )
    if isinstance(found, datetime.date | datetime.time):
        return found.isoformat()
    if isinstance(found, list):
        return "[" + ", ".join(_value(inner, rng) for inner in found) + "]"
    if isinstance(found, dict):
        return (
            "{"
            + ", ".join(f"{_key(key)} = {_value(inner, rng)}" for key, inner in found.items())
            + "}"
        )
    return _string(str(found))


def _key(key: Any) -> str:
    return str(key) if BARE.match(str(key)) else _string(str(key))


def _string(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c
        for c in text
    )
    return f'"{escaped}"'
