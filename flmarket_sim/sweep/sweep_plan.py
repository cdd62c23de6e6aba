"""The [sweep] table of a scenario file becomes runs: every combination of the axes and seeds.

All combinations meet the same seeds, and no policy is in the key of a random stream: comparisons
are paired.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pydantic

from flmarket_sim.errors import InputError, ScenarioError, shown
from flmarket_sim.experiments.task import task_key
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.scenario.check import check_scenario, plain
from flmarket_sim.scenario.model import Scenario, without_nulls
from flmarket_sim.scenario.problems import Problem, describe_problems, dotted
from flmarket_sim.scenario.scenario_file import (
    assign,
    assign_all,
    build_scenario,
    override,
    read_toml,
)
from flmarket_sim.scenario.shipped import read_text
from flmarket_sim.scenario.sweep_table import Sweep
from flmarket_sim.scenario.toml_lines import PathKeys, key_lines, prefixes

MOST_RUNS = 1_000_000
LARGEST_SEED = 2**63 - 1
NOT_AXES = {
    "seed": "seeds are given by sweep.seeds, the same for every combination",
    "study": "a sweep runs markets; a study is a question of its own",
    "sweep": "a sweep cannot vary itself",
}
Tables = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """A dotted path and the values that it takes. Axes of one `group` move together."""

    path: str
    values: tuple[Any, ...]
    group: str
    place: PathKeys  # in the file


@dataclass(frozen=True)
class PlannedRun:
    """One run. `point` has a value for each axis. Without a scenario, `problem` says why."""

    id: str
    seed: int
    point: dict[str, Any]
    scenario: Scenario | None
    problem: str = ""


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep in order: the first axis changes slowest, the seed fastest."""

    name: str
    source: str
    text: str
    digest: str
    axes: tuple[Axis, ...]
    seeds: tuple[int, ...]
    keep_events: bool
    runs: tuple[PlannedRun, ...]
    base: Tables  # the file's tables with overrides, without [sweep]

    @cached_property
    def keys(self) -> dict[str, str]:
        """The key of each run that has a scenario: see `experiments.task`."""
        contents: dict[str, str] = {}  # by point: its runs differ in their seeds only
        keys = {}
        for run in self.runs:
            if run.scenario is not None:
                point = _canonical(run.point)
                if point not in contents:
                    contents[point] = _canonical(file_contents(run.scenario.as_dict()))
                keys[run.id] = task_key("run", run.id, contents[point])
        return keys

    def __repr__(self) -> str:
        axes = ", ".join(axis.path for axis in self.axes) or "no axes"
        return (
            f"<Plan of {self.name}: {len(self.runs):,} runs over {axes}, {len(self.seeds)} seeds>"
        )


def load_sweep(path: str | os.PathLike[str], overrides: Iterable[str] = (), **changes: Any) -> Plan:
    """The plan of a file with a [sweep] table. Raises InputError that names every problem.

    Values are replaced as in `load_scenario`, also those of the table:
    `sweep__grid={"auction.name": ["all-in", "pay-as-bid"]}, sweep__seeds=8`.
    """
    return parse_sweep(read_text(path), str(path), overrides, changes)


def has_sweep(path: str | Path) -> bool:
    return "sweep" in read_toml(read_text(path), str(path))


def parse_sweep(
    text: str,
    source: str = "<sweep>",
    overrides: Iterable[str] = (),
    changes: Mapping[str, Any] | None = None,
) -> Plan:
    data = read_toml(text, source)
    lines = {_without_dots(keys): line for keys, line in key_lines(text).items()}
    problems = list(_spread_axes(data))
    replaced = [override(data, setting) for setting in overrides]
    replaced += assign_all(data, changes or {})
    problems += _spread_axes(data)
    for changed in replaced:
        lines = {keys: line for keys, line in lines.items() if keys[: len(changed)] != changed}
    return _plan(data, text, source, lines, problems)


def plan_sweep(scenario: Scenario, **changes: Any) -> Plan:
    """The plan of a scenario that is an object; the table [sweep] is among the changes."""
    data = without_nulls(plain(scenario))
    assign_all(data, changes)
    return _plan(data, "", scenario.name, {}, list(_spread_axes(data)))


def _plan(
    data: Tables, text: str, source: str, lines: dict[PathKeys, int], problems: list[Problem]
) -> Plan:
    if "sweep" not in data:
        raise InputError(
            f"{source} has no [sweep] table with axes and seeds, so it is a single market to run"
        )
    try:
        table = Sweep.model_validate(data["sweep"])
    except pydantic.ValidationError:
        build_scenario(data, source, lines)  # its error has this problem and all others
        raise
    digest = hashlib.sha256(_canonical(data).encode()).hexdigest()
    base = {key: value for key, value in data.items() if key not in ("sweep", "study")}
    axes, wrong = _axes(table)
    problems += wrong
    seeds = _seeds(table, base)
    if seeds and not 0 <= seeds[-1] <= LARGEST_SEED:
        problems.append(
            Problem(("sweep", "seeds"), f"the last seed would be {seeds[-1]}, above {LARGEST_SEED}")
        )
    count = math.prod(len(group[0].values) for group in _groups(axes)) * len(seeds)
    if count > MOST_RUNS:
        problems.append(
            Problem(
                ("sweep",),
                f"that would be {count:,} runs; more than {MOST_RUNS:,} are not one sweep",
            )
        )
    axes, wrong = _reachable(base, axes)
    problems += wrong
    for axis in axes:  # problems at or above an axis' path are on its line, or where the file says
        for above in prefixes(tuple(axis.path.split("."))):
            lines.setdefault(above, lines.get(axis.place, 0))
    if problems:
        at_first = _tables(base, {axis.path: axis.values[0] for axis in axes})
        problems += [p for p in check_scenario(at_first)[1] if not _touched(p, axes)]
        raise ScenarioError(describe_problems(problems, source, lines))
    runs = _runs(base, axes, seeds, source, lines)
    name = base.get("name", Scenario().name)
    return Plan(
        name, source, text, digest, axes, tuple(seeds), table.keep_events, tuple(runs), base
    )


def points(axes: tuple[Axis, ...]) -> Iterator[dict[str, Any]]:
    """Every combination: the product of the groups. The axes of a group move together."""
    steps = [list(zip(*(axis.values for axis in group), strict=True)) for group in _groups(axes)]
    paths = [axis.path for group in _groups(axes) for axis in group]
    for chosen in itertools.product(*steps):
        yield dict(zip(paths, itertools.chain.from_iterable(chosen), strict=True))


def _runs(
    base: Tables,
    axes: tuple[Axis, ...],
    seeds: range | list[int],
    source: str,
    lines: dict[PathKeys, int],
) -> Iterator[PlannedRun]:
    """Raises ScenarioError for problems of every combination: these are mistakes in the file."""
    seeded = {"seed": seeds[0]} | base
    checked = [(point, *check_scenario(_tables(seeded, point))) for point in points(axes)]
    everywhere = set.intersection(
        *({problem.path for problem in problems} for _, _, problems in checked)
    )
    if everywhere:
        common = [problem for problem in checked[0][2] if problem.path in everywhere]
        raise ScenarioError(describe_problems(common, source, lines))
    for point, scenario, problems in checked:
        problem = "; ".join(
            dict.fromkeys(
                f"{dotted(p.path)}: {p.message}" if p.path else p.message for p in problems
            )
        )
        for seed in seeds:
            if scenario is None:
                digest = hashlib.sha256(
                    _canonical(_tables(base, point) | {"seed": seed}).encode()
                ).hexdigest()
                yield PlannedRun(digest, seed, point, None, problem)
            else:
                seeded_one = scenario.model_copy(update={"seed": seed})
                yield PlannedRun(seeded_one.digest(), seed, point, seeded_one)


def _tables(base: Tables, point: dict[str, Any]) -> Tables:
    data = copy.deepcopy(base)
    for path, value in point.items():
        assign(data, path, copy.deepcopy(value))
    return data


def _seeds(table: Sweep, base: Tables) -> range | list[int]:
    if isinstance(table.seeds, list):
        return table.seeds
    first = base.get("seed", 0)
    start = first if isinstance(first, int) else 0  # the check of the scenario refuses other types
    return range(start, start + table.seeds)


def _groups(axes: tuple[Axis, ...]) -> list[list[Axis]]:
    groups: dict[str, list[Axis]] = {}
    for axis in axes:
        groups.setdefault(axis.group, []).append(axis)
    return list(groups.values())


def _axes(table: Sweep) -> tuple[tuple[Axis, ...], list[Problem]]:
    """The axes that can be used, and the problems of the others."""
    axes: list[Axis] = []
    problems: list[Problem] = []
    for kind, tables in (("grid", table.grid), ("zip", table.zip)):
        for keys, values in _leaves(tables):
            place, path = ("sweep", kind, *keys), ".".join(keys)
            if (wrong := _unusable(path, values, axes)) is not None:
                problems.append(Problem(place, wrong))
            else:
                axes.append(Axis(path, tuple(values), path if kind == "grid" else "zip", place))
    together = [axis for axis in axes if axis.group == "zip"]
    if len({len(axis.values) for axis in together}) > 1:
        lengths = ", ".join(f"{axis.path} has {len(axis.values)}" for axis in together)
        problems.append(
            Problem(("sweep", "zip"), f"lists side by side must have one length, but {lengths}")
        )
        axes = [axis for axis in axes if axis.group != "zip"]
    return tuple(axes), problems


def _unusable(path: str, values: Any, others: list[Axis]) -> str | None:
    if (root := path.split(".")[0]) in NOT_AXES:
        return NOT_AXES[root]
    if not isinstance(values, list):
        return f"must be a list of values (got {shown(values)})"
    if not values:
        return "has no values"
    if len(values) > MOST_RUNS:
        return f"has {len(values):,} values; more than {MOST_RUNS:,} runs are not one sweep"
    counted = Counter(_canonical(value) for value in values)
    if twice := [value for value in values if counted[_canonical(value)] > 1][:1]:
        return f"has {shown(twice[0])} more than once"
    for other in others:
        if path == other.path:
            return "is an axis already"
        if f"{path}.".startswith(f"{other.path}.") or f"{other.path}.".startswith(f"{path}."):
            return f"one of {path} and {other.path} lies inside the other"
    return None


def _reachable(base: Tables, axes: tuple[Axis, ...]) -> tuple[tuple[Axis, ...], list[Problem]]:
    """The axes whose paths exist in the scenario's tables, and the problems of the others."""
    reachable, problems = [], []
    for axis in axes:
        try:
            assign(copy.deepcopy(base), axis.path, None)
            reachable.append(axis)
        except ScenarioError as error:
            problems.append(Problem(axis.place, str(error)))
    return tuple(reachable), problems


def _touched(problem: Problem, axes: tuple[Axis, ...]) -> bool:
    return any(dotted(problem.path).startswith(axis.path) for axis in axes)


def _spread_axes(data: Tables) -> Iterator[Problem]:
    """Writes the quoted key "auction.name" as nested tables, so that changes find one spelling."""
    sweep = data.get("sweep")
    for kind in ("grid", "zip"):
        table = sweep.get(kind) if isinstance(sweep, dict) else None
        if not isinstance(table, dict):
            continue  # the check of the table's shape refuses it
        for key in [key for key in table if "." in key]:
            try:
                assign(table, key, table.pop(key))
            except ScenarioError as error:
                yield Problem(("sweep", kind, *key.split(".")), str(error))


def _leaves(tables: Tables, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _without_dots(keys: PathKeys) -> PathKeys:
    if keys[:1] != ("sweep",):
        return keys
    return tuple(
        itertools.chain.from_iterable(
            key.split(".") if isinstance(key, str) else (key,) for key in keys
        )
    )


def _canonical(value: Any) -> str:
    return json.dumps(
        _spelled(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str
    )


def _spelled(value: Any) -> Any:
    """Writes integers that are too long for Python's decimals, and never valid, in hexadecimal."""
    if isinstance(value, dict):
        return {key: _spelled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_spelled(inner) for inner in value]
    return hex(value) if isinstance(value, int) and value.bit_length() > 10_000 else value
