"""The line of every key of a TOML text, which tomllib does not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator

Key = str | int
PathKeys = tuple[Key, ...]

# no two parts of the pattern match the same spaces, so that it takes one pass
_HEADER = re.compile(r"^(\[\[?)([^\]]+)\]\]?\s*(#.*)?$")
_KEY = re.compile(
    r"""^((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_QUOTED = re.compile(r"""\"(?:[^"\\]|\\.)*"|'[^']*'""")
_BETWEEN_KEYS = re.compile(r"[,={}\[\]]")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def key_lines(text: str) -> dict[PathKeys, int]:
    """The line of every table and key. Keys in an inline table have the line of their parent."""
    lines: dict[PathKeys, int] = {}
    table: PathKeys = ()
    counts: dict[PathKeys, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if header := _HEADER.match(line):
            table = _keys(header[2])
            if header[1] == "[[":
                index = counts.get(table, 0)
                counts[table] = index + 1
                lines.setdefault(table, number)
                table = (*table, index)
            else:
                table = _with_index(table, counts)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_keys(key[1])), number)
    return lines


def overlong_key(text: str, most: int) -> int | None:
    """The first line that may have a key with more than `most` dots outside of quotes."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > most and not line.lstrip().startswith("#"):
            bare = _QUOTED.sub("q", line)
            if any(piece.count(".") > most for piece in _BETWEEN_KEYS.split(bare)):
                return number
    return None


def _keys(text: str) -> PathKeys:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _with_index(table: PathKeys, counts: dict[PathKeys, int]) -> PathKeys:
    """`[buyers.model]` after `[[buyers]]` belongs to the last buyer."""
    for length in range(len(table), 0, -1):
        if table[:length] in counts:
            return (*table[:length], counts[table[:length]] - 1, *table[length:])
    return table


def prefixes(path: PathKeys) -> Iterator[PathKeys]:
    """The path, the path of the table around it, and so on."""
    for length in range(len(path), 0, -1):
        yield path[:length]
