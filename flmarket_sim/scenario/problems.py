"""What is wrong with a scenario: its structure, what two places of it say, names and options of plug-ins. All of it at once."""

from __future__ import annotations

import copy
import difflib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pydantic
from pydantic import BaseModel

from flmarket_sim.errors import DataError, InputError, ScenarioError, shortened, shown
from flmarket_sim.learning.partitions import ChecksCounts
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.registry import Registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import (
    HARDENED,
    LARGEST_EXPONENTIAL,
    SHARES_TOLERANCE,
    TOO_EXPONENTIAL,
    BehaviourShare,
    Market,
    Model,
    Owners,
    Scenario,
    ScenarioFile,
    Sweep,
    asks_for_repetition,
    not_repeatable,
    too_many_shares,
)
from flmarket_sim.scenario.toml_lines import Key, PathKeys, prefixes

DEEPEST = 100  # tables in tables: a scenario has four
MOST_TOLD = 50  # errors of one file


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
        return (
            f"{where}: {dotted(self.path)}: {self.message}"
            if self.path
            else f"{where}: {self.message}"
        )


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
        said = {
            p.message for p in problems
        }  # what concerns two places is said above, with its line
        problems += [p for p in found if p.message not in said and (p.path or not problems)]
    problems += [
        p for p in _not_finite(data) if not any(q.path[: len(p.path)] == p.path for q in problems)
    ]
    if scenario is not None and not problems:
        problems += _population_problems(scenario)
    return (None if problems else scenario), problems


def describe_problems(problems: list[Problem], source: str, lines: dict[PathKeys, int]) -> str:
    """A paragraph with every problem on its line, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.line(lines))
    unique = list(dict.fromkeys(shortened(p.describe(source, lines)) for p in ordered))
    count = f"{len(unique)} error{'s' if len(unique) > 1 else ''}"
    told = [f"  {line}" for line in unique[:MOST_TOLD]]
    if sum(map(len, told)) > MOST_TOLD * 200:  # a file full of long lines: a few of them say enough
        told = told[:4]
    rest = [f"  and {len(unique) - len(told)} more"] if len(told) < len(unique) else []
    return f"{count} in {source}\n" + "\n".join(told + rest)


def dotted(path: PathKeys) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


def values(data: Any, source: str) -> Iterator[tuple[PathKeys, Any]]:
    """Everything in tables and lists that is neither, with its path."""
    level: list[tuple[PathKeys, Any]] = [((), data)]
    for _ in range(DEEPEST):
        inner = [((*path, key), one) for path, part in level for key, one in _entries(part)]
        yield from (found for found in inner if not isinstance(found[1], dict | list))
        level = [found for found in inner if isinstance(found[1], dict | list)]
        if not level:
            return
    raise ScenarioError(f"{source} has tables or lists more than {DEEPEST} deep inside each other")


def _entries(part: dict[str, Any] | list[Any]) -> Iterable[tuple[Key, Any]]:
    return part.items() if isinstance(part, dict) else enumerate(part)


def _structural(error: Any) -> Problem:
    """One pydantic error in our words."""
    path = tuple(
        key for key in error["loc"] if isinstance(key, int) or not key.startswith("function-")
    )
    if error["type"] == "extra_forbidden":
        allowed = list(_model_at(path[:-1]).model_fields)
        return Problem(
            path,
            f"unknown key{_nearest(str(path[-1]), allowed)} Allowed here: {', '.join(allowed)}",
        )
    if error["type"] == "missing":
        return Problem(path, "is missing")
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if error["type"] == "literal_error":
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        message = f"must be one of {', '.join(allowed)}{_nearest(str(error['input']), allowed)}"
    got = "" if isinstance(error["input"], dict | BaseModel) else f" (got {shown(error['input'])})"
    return Problem(path, message + got)


def _nearest(name: str, allowed: list[str]) -> str:
    near = difflib.get_close_matches(name[:100], allowed, 1)
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
    partition = registry.partitions.create(
        scenario.owners.partition.name, **scenario.owners.partition.options
    )
    if not isinstance(partition, ChecksCounts):
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
                buyer[key] = (
                    common if isinstance(common, dict) else {"name": getattr(defaults, key).name}
                ) | mine
    return data


def _cross_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """What two places of a scenario say that cannot both hold. `Scenario` checks it too, but only once all else is right."""
    owners, market, budget, buyers = (
        data.get(key) for key in ("owners", "market", "budget", "buyers")
    )
    owners, market = (table if isinstance(table, dict) else {} for table in (owners, market))
    bidders, count = market.get("bidders", Market().bidders), owners.get("count", Owners().count)
    if isinstance(bidders, int) and isinstance(count, int) and bidders > count >= 1:
        where = ("market", "bidders") if "bidders" in market else ("owners", "count")
        yield Problem(
            where,
            f"{bidders} owners are asked a round (market.bidders), but there are only {count} (owners.count)",
        )
    families, eb = owners.get("families", Owners().families), owners.get("privacy_budget", 0.0)
    largest = eb[-1] if isinstance(eb, list) and eb else eb
    exponential = isinstance(families, list | tuple) and "exponential" in families
    if (
        exponential
        and isinstance(largest, int | float)
        and LARGEST_EXPONENTIAL < largest < float("inf")
    ):
        yield Problem(("owners", "privacy_budget"), TOO_EXPONENTIAL)
    behaviours = owners.get("behaviours")
    shares = [
        b.get("share")
        for b in (behaviours if isinstance(behaviours, list) else ())
        if isinstance(b, dict)
    ]
    if (
        total := math.fsum(s for s in shares if isinstance(s, int | float) and 0 <= s <= 1)
    ) > 1 + SHARES_TOLERANCE:
        yield Problem(("owners", "behaviours"), too_many_shares(total))
    privacy = data.get("privacy")
    if isinstance(privacy, dict) and privacy.get("noise") == HARDENED:
        asked = asks_for_repetition("seed" in data, "sweep" in data, "study" in data)
        if asked is not None:
            yield Problem(("privacy", "noise"), not_repeatable(asked))
    if isinstance(budget, dict) and ("factor" in budget) == ("amount" in budget):
        yield Problem(("budget",), "give either 'factor' or 'amount'")
    seen: set[str] = set()
    for i, buyer in enumerate(buyers if isinstance(buyers, list) else ()):
        name = buyer.get("name") if isinstance(buyer, dict) else None
        if isinstance(name, str) and name in seen:
            yield Problem(("buyers", i, "name"), f"another buyer is called {name!r} already")
        elif isinstance(name, str):
            seen.add(name)


def _not_finite(data: dict[str, Any]) -> Iterator[Problem]:
    """Numbers that JSON has no word for: inside a plug-in's options no type says that they are wrong, but run.json could not keep them."""
    for path, value in values(data, "the scenario"):
        if isinstance(value, float) and not math.isfinite(value):
            yield Problem(path, f"must be a finite number (got {value})")


def _plugin_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """Unknown plug-ins and wrong options, wherever a table names a plug-in."""
    yield from _check_plugin(("data",), data.get("data"), registry.datasets)
    yield from _check_plugin(("study",), data.get("study"), registry.studies)
    owners, market = data.get("owners"), data.get("market")
    if isinstance(owners, dict):
        yield from _check_plugin(
            ("owners", "partition"), owners.get("partition"), registry.partitions
        )
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
            yield from _check_plugin(
                (*path, "aggregation"), table.get("aggregation"), registry.aggregation
            )
            yield from _check_plugin((*path, "model"), table.get("model"), registry.models, skip=2)


_OWN_KEYS = {
    "model": Model.model_fields.keys(),
    "behaviour": BehaviourShare.model_fields.keys(),
}  # beside a plug-in's options


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
        checked = allowed_model.model_validate(options, strict=True)
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
                got = "" if e["type"] == "missing" else f" (got {shown(e['input'])})"
                yield Problem(where, message[:1].lower() + message[1:] + got)
        return
    if known is not registry.models:  # a model needs the data's shape
        try:
            known.construct(name, cls, registry.chosen(checked))
        except InputError as error:
            yield Problem(path, str(error))
