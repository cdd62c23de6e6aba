"""Everything that is wrong with a scenario, at once: types, rules, names and options of plug-ins.

Scenario files and `Scenario(...)` in Python are checked by the same function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import pydantic
from pydantic import BaseModel

from flmarket_sim.errors import ScenarioError, did_you_mean, shown
from flmarket_sim.scenario.cheating_rules import cheating_problems, class_problems
from flmarket_sim.scenario.given_owners import count_given_owners
from flmarket_sim.scenario.model import TYPES_ONLY, Scenario, ScenarioFile
from flmarket_sim.scenario.plugin_tables import completed, plugin_problems
from flmarket_sim.scenario.problems import Problem, describe_problems
from flmarket_sim.scenario.rules import cross_problems, numbers_are_finite, population_problems
from flmarket_sim.scenario.sweep_table import Sweep
from flmarket_sim.scenario.toml_lines import PathKeys, prefixes


def check_scenario(
    data: dict[str, Any], with_data: bool = True
) -> tuple[Scenario | None, list[Problem]]:
    """The scenario of plain tables, or everything that is wrong with it.

    `with_data=False` does not look at the data: those of a finished run may be gone by now.
    """
    tables = completed(data)
    if with_data:
        count_given_owners(tables)
    problems = [*cross_problems(tables), *cheating_problems(tables), *plugin_problems(tables)]
    scenario = None
    try:
        if (sweep := tables.pop("sweep", None)) is not None:
            Sweep.model_validate(sweep)
    except pydantic.ValidationError as error:
        problems += [_type_problem(e | {"loc": ("sweep", *e["loc"])}) for e in error.errors()]
    try:
        scenario = Scenario.model_validate(tables, context=TYPES_ONLY)
    except pydantic.ValidationError as error:
        problems += [_type_problem(e) for e in error.errors()]
    known = {path for problem in problems for path in prefixes(problem.path)}
    problems += [p for p in numbers_are_finite(tables) if p.path not in known]
    if scenario is not None and with_data and not problems:
        problems += population_problems(scenario) or class_problems(scenario)
    return (None if problems else scenario), problems


def checked_tables(data: Any) -> dict[str, Any]:
    """The tables of a scenario built in Python; raises ScenarioError with all that is wrong."""
    tables = plain(data)
    if not isinstance(tables, dict):
        raise ScenarioError(f"a scenario is made of tables, not of {shown(data)}")
    _, problems = check_scenario(tables)
    if "sweep" in tables:
        problems.append(Problem(("sweep",), "only a scenario file can have a sweep (load_sweep)"))
    if problems:
        raise ScenarioError(describe_problems(problems, "the scenario", {}))
    tables = completed(tables)
    count_given_owners(tables)
    return tables


def plain(value: Any) -> Any:
    """Parts of a scenario as the tables and lists that a file would have; defaults are left out."""
    if isinstance(value, BaseModel):
        given = {key: getattr(value, key) for key in value.model_fields_set}
        return plain({key: inner for key, inner in given.items() if inner is not None})
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _type_problem(error: Any) -> Problem:
    """One pydantic error in our words."""
    path = tuple(
        key for key in error["loc"] if isinstance(key, int) or not key.startswith("function-")
    )
    if error["type"] == "extra_forbidden":
        allowed = list(_model_at(path[:-1]).model_fields)
        hint = did_you_mean(str(path[-1]), allowed, ".")
        return Problem(path, f"unknown key{hint} Allowed here: {', '.join(allowed)}")
    if error["type"] == "missing":
        return Problem(path, "is missing")
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if error["type"] == "literal_error":
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        hint = did_you_mean(str(error["input"]), allowed, ".")
        message = f"must be one of {', '.join(allowed)}{hint}"
    got = "" if isinstance(error["input"], dict | BaseModel) else f" (got {shown(error['input'])})"
    return Problem(path, message + got)


def _model_at(path: PathKeys) -> type[BaseModel]:
    """The model class of the table at a path, for the names that are allowed in it."""
    model: type[BaseModel] = ScenarioFile
    for key in path:
        if isinstance(key, int) or key not in model.model_fields:
            continue
        annotation = model.model_fields[key].annotation
        tables = [t for t in _flat(annotation) if issubclass(t, BaseModel)]
        model = tables[0] if tables else model
    return model


def _flat(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _flat(inner)
