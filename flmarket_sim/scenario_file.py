"""Scenario files: TOML in, overrides applied, every error at once with line, path, value and what is allowed."""

from __future__ import annotations

import copy
import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pydantic
from pydantic import BaseModel

from flmarket_sim import registry
from flmarket_sim.errors import DataError, InputError, ScenarioError
from flmarket_sim.randomness import Streams
from flmarket_sim.registry import Registry
from flmarket_sim.scenario import (
    LARGEST_EXPONENTIAL,
    SHARES_TOLERANCE,
    TOO_EXPONENTIAL,
    Behaviour,
    Market,
    Model,
    Owners,
    Scenario,
    ScenarioFile,
    Sweep,
    too_many_shares,
)
from flmarket_sim.toml_lines import Key, PathKeys, key_lines, prefixes


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where."""

    path: PathKeys
    message: str

    def line(self, lines: dict[PathKeys, int]) -> int:
        """Its line, or that of the nearest table around it; 0 where the file does not have it (defaults, --set)."""
        return next((lines[p] for p in prefixes(self.path) if p in lines), 0)

    def describe(self, source: str, lines: dict[PathKeys, int]) -> str:
        line = self.line(lines)
        where = f"{source}:{line}" if line else source
        return f"{where}: {dotted(self.path)}: {self.message}" if self.path else f"{where}: {self.message}"


def load_scenario(path: str | Path, overrides: Iterable[str] = ()) -> Scenario:
    """The scenario of a TOML file, with `dotted.path=value` overrides. Raises ScenarioError with all that is wrong.

    A [sweep] table is checked for its shape and then left alone: it is for `flmarket sweep`.
    """
    return parse_scenario(read_text(path), str(path), overrides)


def read_text(path: str | Path) -> str:
    file = Path(path)
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = difflib.get_close_matches(file.name, [p.name for p in file.parent.glob("*.toml")], 1)
        hint = f"; did you mean {file.parent / near[0]}?" if near else ""
        raise ScenarioError(f"there is no scenario file {file}{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{file} cannot be read: {error}") from None


def parse_scenario(text: str, source: str = "<scenario>", overrides: Iterable[str] = ()) -> Scenario:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{source} is not TOML: {error}") from None
    changed = [override(data, setting) for setting in overrides]
    lines = key_lines(text)
    for path in changed:
        for known in [p for p in lines if p[: len(path)] == path]:
            del lines[known]
    return build_scenario(data, source, lines)


def build_scenario(data: dict[str, Any], source: str = "<scenario>", lines: dict[PathKeys, int] | None = None) -> Scenario:
    """A scenario from plain data, plug-in names and options checked as well."""
    scenario, problems = check_scenario(data)
    if problems or scenario is None:
        raise ScenarioError(describe_problems(problems, source, lines or {}))
    return scenario


def check_scenario(data: dict[str, Any]) -> tuple[Scenario | None, list[Problem]]:
    """The scenario, or everything that is wrong with it."""
    data = _with_names(data)
    problems = [*_cross_problems(data), *_plugin_problems(data)]
    scenario = None
    try:
        if (sweep := data.pop("sweep", None)) is not None:
            Sweep.model_validate(sweep)
    except pydantic.ValidationError as error:
        problems += [_structural(e | {"loc": ("sweep", *e["loc"])}) for e in error.errors()]
    try:
        scenario = Scenario.model_validate(data)
    except pydantic.ValidationError as error:
        found = [_structural(e) for e in error.errors()]
        said = {p.message for p in problems}  # what concerns two places is said above, with its line
        problems += [p for p in found if p.message not in said and (p.path or not problems)]
    if scenario is not None and not problems:
        problems += _population_problems(scenario)
    return (None if problems else scenario), problems


def describe_problems(problems: list[Problem], source: str, lines: dict[PathKeys, int]) -> str:
    """A paragraph with every problem on its line, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.line(lines))
    unique = dict.fromkeys(p.describe(source, lines) for p in ordered)
    count = f"{len(unique)} error{'s' if len(unique) > 1 else ''}"
    return f"{count} in {source}\n" + "\n".join(f"  {line}" for line in unique)


def override(data: dict[str, Any], setting: str) -> PathKeys:
    """Applies `dotted.path=value`; the value is TOML, or else taken as a string. Returns the path."""
    name, equals, raw = setting.partition("=")
    if not equals or not all(key.strip() for key in name.split(".")):
        raise ScenarioError(f"--set wants dotted.path=value, got {setting!r}")
    try:
        value = tomllib.loads(f"value = {raw.strip()}")["value"]
    except (ValueError, RecursionError):
        value = raw.strip()
    try:
        return assign(data, name, value)
    except ScenarioError as error:
        raise ScenarioError(f"--set {setting}: {error}") from None


def assign(data: dict[str, Any], name: str, value: Any) -> PathKeys:
    """Puts a value at a dotted path, tables made on the way. Returns the path; raises ScenarioError where none leads there."""
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


def dotted(path: PathKeys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def json_schema() -> dict[str, Any]:
    """JSON Schema of scenario files, for editors."""
    schema = ScenarioFile.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    known = schema["$defs"]["Plugin"]["properties"]["name"]
    known["description"] = "a registered name (see `flmarket list`) or 'module:Class'"
    return schema


# -- what is wrong ------------------------------------------------------------------------------------------------------


def _structural(error: Any) -> Problem:
    """One pydantic error in our words."""
    path = tuple(key for key in error["loc"] if isinstance(key, int) or not key.startswith("function-"))
    if error["type"] == "extra_forbidden":
        allowed = list(_model_at(path[:-1]).model_fields)
        return Problem(path, f"unknown key{_nearest(str(path[-1]), allowed)} Allowed here: {', '.join(allowed)}")
    if error["type"] == "missing":
        return Problem(path, "is missing")
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if error["type"] == "literal_error":
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        message = f"must be one of {', '.join(allowed)}{_nearest(str(error['input']), allowed)}"
    shown = "" if isinstance(error["input"], dict | BaseModel) else f" (got {error['input']!r})"
    return Problem(path, message + shown)


def _nearest(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name, allowed, 1)
    return f"; did you mean {near[0]!r}?" if near else "."


def _model_at(path: PathKeys) -> type[BaseModel]:
    """The model class of the table at a path, for the names that are allowed in it."""
    model: type[BaseModel] = ScenarioFile
    for key in path:
        if isinstance(key, int) or key not in model.model_fields:
            continue
        found = [t for t in _flat(model.model_fields[key].annotation) if issubclass(t, BaseModel)]
        if found:
            model = found[0]
    return model


def _flat(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _flat(inner)


def _population_problems(scenario: Scenario) -> list[Problem]:
    """Too few records for so many owners: said before anything is run, where the numbers are known without the data."""
    source = registry.datasets.create(scenario.data.name, **scenario.data.options)
    partition = registry.partitions.create(scenario.owners.partition.name, **scenario.owners.partition.options)
    if not hasattr(partition, "check"):
        return []
    try:
        partition.check(source.class_counts(Streams(scenario.seed)), scenario.owners.count)
    except InputError as error:
        return [Problem(("owners", "count"), str(error))]
    except DataError:
        pass  # not here; the run will say so
    return []


def _with_names(data: dict[str, Any]) -> dict[str, Any]:
    """The data with plug-in tables completed: without a name, a buyer's table adds to the scenario's, and that to the default."""
    data = copy.deepcopy(data)
    defaults = Scenario()
    for place, key, default in (
        (data, "data", defaults.data.name),
        (data, "auction", defaults.auction.name),
        (data, "aggregation", defaults.aggregation.name),
        (data.get("owners"), "partition", defaults.owners.partition.name),
        (data.get("market"), "delay", defaults.market.delay.name),
    ):
        if isinstance(place, dict) and isinstance(place.get(key), dict):
            place[key].setdefault("name", default)
    buyers = data.get("buyers")
    for buyer in buyers if isinstance(buyers, list) else ():
        for key in ("auction", "aggregation", "model"):
            mine = buyer.get(key) if isinstance(buyer, dict) else None
            if isinstance(mine, dict) and "name" not in mine:
                common = data.get(key)
                buyer[key] = (common if isinstance(common, dict) else {"name": getattr(defaults, key).name}) | mine
    return data


def _cross_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """What two places of a scenario say that cannot both hold. `Scenario` checks it too, but only once all else is right."""
    owners, market, budget, buyers = (data.get(key) for key in ("owners", "market", "budget", "buyers"))
    owners, market = (table if isinstance(table, dict) else {} for table in (owners, market))
    bidders, count = market.get("bidders", Market().bidders), owners.get("count", Owners().count)
    if isinstance(bidders, int) and isinstance(count, int) and bidders > count >= 1:
        where = ("market", "bidders") if "bidders" in market else ("owners", "count")
        yield Problem(
            where, f"{bidders} owners are asked a round (market.bidders), but there are only {count} (owners.count)"
        )
    families, eb = owners.get("families", Owners().families), owners.get("privacy_budget", 0.0)
    largest = eb[-1] if isinstance(eb, list) and eb else eb
    exponential = isinstance(families, list | tuple) and "exponential" in families
    if exponential and isinstance(largest, int | float) and LARGEST_EXPONENTIAL < largest < float("inf"):
        yield Problem(("owners", "privacy_budget"), TOO_EXPONENTIAL)
    behaviours = owners.get("behaviours")
    shares = [b.get("share") for b in (behaviours if isinstance(behaviours, list) else ()) if isinstance(b, dict)]
    if (total := math.fsum(s for s in shares if isinstance(s, int | float) and 0 <= s <= 1)) > 1 + SHARES_TOLERANCE:
        yield Problem(("owners", "behaviours"), too_many_shares(total))
    if isinstance(budget, dict) and ("factor" in budget) == ("amount" in budget):
        yield Problem(("budget",), "give either 'factor' or 'amount'")
    seen: set[str] = set()
    for i, buyer in enumerate(buyers if isinstance(buyers, list) else ()):
        name = buyer.get("name") if isinstance(buyer, dict) else None
        if isinstance(name, str) and name in seen:
            yield Problem(("buyers", i, "name"), f"another buyer is called {name!r} already")
        elif isinstance(name, str):
            seen.add(name)


def _plugin_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """Unknown plug-ins and wrong options, wherever a table names a plug-in."""
    yield from _check_plugin(("data",), data.get("data"), registry.datasets)
    yield from _check_plugin(("study",), data.get("study"), registry.studies)
    owners, market = data.get("owners"), data.get("market")
    if isinstance(owners, dict):
        yield from _check_plugin(("owners", "partition"), owners.get("partition"), registry.partitions)
        behaviours = owners.get("behaviours")
        for i, behaviour in enumerate(behaviours if isinstance(behaviours, list) else ()):
            yield from _check_plugin(("owners", "behaviours", i), behaviour, registry.behaviours)
    if isinstance(market, dict):
        yield from _check_plugin(("market", "delay"), market.get("delay"), registry.delays)
    buyers = data.get("buyers")
    tables: list[tuple[PathKeys, Any]] = [((), data)]
    if isinstance(buyers, list):
        tables += [(("buyers", i), buyer) for i, buyer in enumerate(buyers)]
    for path, table in tables:
        if isinstance(table, dict):
            yield from _check_plugin((*path, "auction"), table.get("auction"), registry.auctions)
            yield from _check_plugin((*path, "aggregation"), table.get("aggregation"), registry.aggregation)
            yield from _check_plugin((*path, "model"), table.get("model"), registry.models, skip=2)


_OWN_KEYS = {"model": Model.model_fields.keys(), "behaviour": Behaviour.model_fields.keys()}  # beside a plug-in's options


def _check_plugin(path: PathKeys, table: Any, known: Registry, skip: int = 0) -> Iterator[Problem]:
    if not isinstance(table, dict) or not isinstance(table.get("name", ""), str):
        return
    name = table.get("name")
    if name is None:
        if known is not registry.models:
            return
        name = "logistic"
    try:
        cls = known.get(name)
    except InputError as error:
        yield Problem((*path, "name"), str(error))
        return
    own = set(_OWN_KEYS.get(known.kind, {"name"}))
    options = {key: value for key, value in table.items() if key not in own}
    try:
        allowed_model = registry.options_model(cls, skip)
    except InputError as error:
        yield Problem((*path, "name"), str(error))
        return
    try:
        allowed_model.model_validate(options, strict=True)
    except pydantic.ValidationError as error:
        for e in error.errors():
            where = (*path, *e["loc"])
            if e["type"] == "extra_forbidden":
                allowed = sorted((set(allowed_model.model_fields) | own) - {"name"})
                listed = ", ".join(allowed) or "none"
                yield Problem(
                    where,
                    f"{name!r} has no such option{_nearest(str(e['loc'][-1]), allowed)} Options: {listed}",
                )
            else:
                message = e["msg"].removeprefix("Value error, ")
                shown = "" if e["type"] == "missing" else f" (got {e['input']!r})"
                yield Problem(where, message[:1].lower() + message[1:] + shown)
        return
    if known is not registry.models:  # a model needs the data's shape
        try:
            known.construct(name, cls, options)
        except InputError as error:
            yield Problem(path, str(error))
