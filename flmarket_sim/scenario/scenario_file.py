"""Scenario files: reads TOML, applies overrides, and reports every error with its line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from flmarket_sim.errors import ScenarioError, shortened, shown
from flmarket_sim.scenario.check import check_scenario, plain
from flmarket_sim.scenario.model import Scenario, ScenarioFile, without_nulls
from flmarket_sim.scenario.problems import DEEPEST, Problem, describe_problems, dotted, values
from flmarket_sim.scenario.shipped import read_text
from flmarket_sim.scenario.toml_lines import Key, PathKeys, key_lines, overlong_key

LONGEST_NUMBER = 1024  # bits: as far as floating-point numbers reach


def load_scenario(
    path: str | os.PathLike[str], overrides: Iterable[str] = (), **changes: Any
) -> Scenario:
    """The scenario of a TOML file, or of a shipped one by its name: `quickstart`, `paper/iid`.

    Values can be replaced in two ways: by texts `dotted.path=value` as on the command line, and by
    keywords, in which a double underscore stands for the dot: `rounds=10, owners__count=50`. A
    text in the place of a plug-in's table is its name: `auction="all-in"`. Raises ScenarioError
    with everything that is wrong. A [sweep] table is checked for its types and then ignored.
    """
    return parse_scenario(read_text(path), str(path), overrides, changes)


def change_scenario(scenario: Scenario, **changes: Any) -> Scenario:
    """The scenario with other values, given as for `load_scenario`; None removes one."""
    data = plain(scenario)
    assign_all(data, changes)
    return build_scenario(without_nulls(data), scenario.name)


def read_toml(text: str, source: str) -> dict[str, Any]:
    """The tables of a TOML text; nothing in it is evaluated."""
    # the time of tomllib grows with the square of the number of dots in a key
    if (line := overlong_key(text, DEEPEST)) is not None:
        raise ScenarioError(f"{source}:{line}: more than {DEEPEST} dots in a key")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{source} is not TOML: {shortened(str(error))}") from None
    _refuse_giants(data, source, key_lines(text))
    return data


def parse_scenario(
    text: str,
    source: str = "<scenario>",
    overrides: Iterable[str] = (),
    changes: Mapping[str, Any] | None = None,
) -> Scenario:
    data = read_toml(text, source)
    changed = [override(data, setting) for setting in overrides]
    changed += assign_all(data, changes or {})
    lines = key_lines(text)
    for path in changed:
        for known in [p for p in lines if p[: len(path)] == path]:
            del lines[known]
    return build_scenario(data, source, lines)


def build_scenario(
    data: dict[str, Any],
    source: str = "<scenario>",
    lines: dict[PathKeys, int] | None = None,
    with_data: bool = True,
) -> Scenario:
    """A scenario from plain tables; raises ScenarioError with everything that is wrong.

    `with_data=False` does not look whether its data are here and fit.
    """
    scenario, problems = check_scenario(data, with_data)
    if problems or scenario is None:
        raise ScenarioError(describe_problems(problems, source, lines or {}))
    return scenario


def override(data: dict[str, Any], setting: str) -> PathKeys:
    """Applies `dotted.path=value`, a value in TOML or else a plain text. Returns the path."""
    name, equals, raw = setting.partition("=")
    if any("\ud800" <= letter <= "\udfff" for letter in setting):
        raise ScenarioError(f"`override` {shown(setting)}: that is not valid text")
    if not equals or not all(key.strip() for key in name.split(".")):
        raise ScenarioError(f"`override` wants dotted.path=value, got {shown(setting)}")
    try:
        value = (
            raw.strip()
            if overlong_key(raw, DEEPEST)
            else tomllib.loads(f"value = {raw.strip()}")["value"]
        )
    except (ValueError, RecursionError):
        value = raw.strip()
    try:
        path = assign(data, name, value)
        _refuse_giants(data, "the scenario", {})
        return path
    except ScenarioError as error:
        raise ScenarioError(f"`override` {shortened(setting)}: {error}") from None


def assign_all(data: dict[str, Any], changes: Mapping[str, Any]) -> list[PathKeys]:
    """Puts values at paths whose dots are written as double underscores. Returns the paths."""
    return [assign(data, name.replace("__", "."), plain(value)) for name, value in changes.items()]


def assign(data: dict[str, Any], name: str, value: Any) -> PathKeys:
    """Puts a value at a dotted path and makes the tables on the way. Returns the path.

    Raises ScenarioError if the path leads through a value.
    """
    keys = [key.strip() for key in name.split(".")]
    path: list[Key] = []
    place: Any = data
    for key in keys[:-1]:
        step: Key = int(key) if isinstance(place, list) and key.isdecimal() else key
        path.append(step)
        try:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        except (IndexError, TypeError):
            raise ScenarioError(f"there is no {dotted(tuple(path))}") from None
        if not isinstance(place, dict | list):
            raise ScenarioError(f"{dotted(tuple(path))} is a value, not a table")
    last: Key = int(keys[-1]) if isinstance(place, list) and keys[-1].isdecimal() else keys[-1]
    try:
        place[last] = value
    except (IndexError, TypeError):
        raise ScenarioError(f"there is no {name}") from None
    return (*path, last)


def _refuse_giants(data: Any, source: str, lines: dict[PathKeys, int]) -> None:
    """Refuses tables too deep for recursion, and numbers too long to print."""
    giants = [
        Problem(path, f"a number must have at most {LONGEST_NUMBER} bits (got {shown(value)})")
        for path, value in values(data, source)
        if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER
    ]
    if giants:
        raise ScenarioError(describe_problems(giants, source, lines))


def json_schema() -> dict[str, Any]:
    """JSON Schema of scenario files, for editors."""
    schema = ScenarioFile.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    known = schema["$defs"]["Plugin"]["properties"]["name"]
    known["description"] = (
        "a registered name (see `flmarket list`), 'module:Class' or 'path/to/file.py:Class'"
    )
    for table in ("Plugin", "Model"):
        name = {"type": "string", "minLength": 1, "description": "a name without options"}
        schema["$defs"][table] = {"anyOf": [name, schema["$defs"][table]]}
    return schema
