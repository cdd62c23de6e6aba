"""Plain tables as the TOML text of a scenario file."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from flmarket_sim.errors import InputError

BARE = re.compile(r"[A-Za-z0-9_-]+")
SHORT = 78  # letters of a table that stands on one line


def toml_text(tables: dict[str, Any]) -> str:
    """The text of a scenario: values first, then a section for each table."""
    plain = {key: value for key, value in tables.items() if not _is_section(value)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        if isinstance(value, dict):
            lines += _section(_key(key), value)
        elif _is_section(value):
            for entry in value:
                lines += ["", f"[[{_key(key)}]]", *_entries(entry)]
    return "\n".join(lines).strip() + "\n"


def _is_section(value: Any) -> bool:
    """A table, or a list of tables."""
    listed = isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)
    return isinstance(value, dict) or listed


def _section(name: str, table: dict[str, Any]) -> list[str]:
    """A section; long tables within it, and lists of tables, are sections of their own."""
    own, inner = dict[str, Any](), dict[str, Any]()
    for key, value in table.items():
        large = _is_section(value) and len(_value(value)) > SHORT
        (inner if large else own)[key] = value
    lines = ["", f"[{name}]", *_entries(own)]
    for key, value in inner.items():
        path = f"{name}.{_key(key)}"
        if isinstance(value, dict):
            lines += _section(path, value)
        else:
            for entry in value:
                lines += ["", f"[[{path}]]", *_entries(entry)]
    return lines


def _entries(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        text = repr(value)
        return text if set(text) & set(".e") else f"{text}.0"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(_entries(value)) + " }" if value else "{}"
    raise InputError(f"a scenario file cannot hold {type(value).__name__}")


def _text(text: str) -> str:
    """A basic string of TOML: JSON's escapes, and none for what TOML allows."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
