"""A sweep for people: the table of planned runs, and means over the seeds of finished runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.statistics import from_seeds
from flmarket_sim.studies.study import spread
from flmarket_sim.sweep.paired_differences import paired_differences
from flmarket_sim.sweep.sweep_folder import total_column
from flmarket_sim.sweep.sweep_plan import Plan, PlannedRun

MOST_LINES = 60  # combinations that a terminal shows
METRICS = (
    "mean_error_bound",
    "final_accuracy",
    "final_balanced_accuracy",
    "spent",
    "privacy_sold",
    "owners_surplus",
)
BESIDE = {"constant_guess": "the constant guess", "noiseless_accuracy": "the model without noise"}
Row = dict[str, Any]


def plan_rows(plan: Plan, finished: set[str]) -> list[Row]:
    """An entry for each run, as `--plan --json` prints them."""
    return [
        {"run": run.id, "seed": run.seed}
        | run.point
        | {"state": _state(run, finished), "problem": run.problem or None}
        for run in plan.runs
    ]


def plan_lines(plan: Plan, finished: set[str]) -> list[Row]:
    """A row for each combination, with its seeds and the number of runs to do."""
    return [
        {path: _value(value) for path, value in first.point.items()}
        | {"seeds": _seeds(plan.seeds), "to_do": _to_do(plan.runs, place, plan, finished)}
        for place, first in enumerate(plan.runs)
        if place % len(plan.seeds) == 0
    ]


def _to_do(runs: Sequence[PlannedRun], first: int, plan: Plan, finished: set[str]) -> int | str:
    some = runs[first : first + len(plan.seeds)]
    if some[0].scenario is None:
        return f"not valid: {some[0].problem}"
    return sum(_state(run, finished) == "to do" for run in some)


def plan_sentence(plan: Plan, finished: set[str]) -> str:
    """How many runs there are, and how many of them are done."""
    states = [_state(run, finished) for run in plan.runs]
    counts = (
        f"{len(plan.runs):,} runs: {states.count('to do'):,} to do, "
        f"{states.count('finished'):,} finished before"
    )
    wrong = f", {states.count('not valid'):,} not valid" if "not valid" in states else ""
    return counts + wrong


def means(summary: pa.Table, plan: Plan) -> list[Row]:
    """Mean and ends of Student's 95 % interval over the seeds, for each combination and buyer."""
    paths = [axis.path for axis in plan.axes]
    groups: dict[tuple[Any, ...], list[Row]] = {}
    failures: dict[tuple[Any, ...], int] = {}
    for row in summary.to_pylist():
        point = tuple(row[path] for path in paths)
        if row["outcome"] == "finished":
            groups.setdefault((*point, row["buyer"]), []).append(row)
        else:
            failures[point] = failures.get(point, 0) + 1
    lines = []
    for point in dict.fromkeys(tuple(row[path] for path in paths) for row in summary.to_pylist()):
        for key in [key for key in groups if key[:-1] == point] or [(*point, None)]:
            rows = groups.get(key, [])
            line = dict(zip(paths, point, strict=True)) | {"buyer": key[-1], "runs": len(rows)}
            line["failed"] = failures.get(point, 0)
            for name in (*METRICS, *BESIDE):
                column = total_column(name, plan.axes)
                values = [np.nan if row[column] is None else row[column] for row in rows]
                line |= spread(name, from_seeds(np.array(values, float)))
            lines.append(line)
    return lines


def differences(summary: pa.Table, plan: Plan) -> tuple[str, list[Row]] | None:
    """The first axis of names, and a row of differences for each of its values.

    A row is the value less the axis' first value, in the same worlds, averaged over the other axes.
    Without such an axis, or with one seed (which gives no interval), the result is None.
    """
    axis = next(
        (
            axis
            for axis in plan.axes
            if len(axis.values) > 1 and all(isinstance(value, str) for value in axis.values)
        ),
        None,
    )
    if axis is None or len(plan.seeds) < 2:
        return None
    done = [row[axis.path] for row in summary.to_pylist() if row["outcome"] == "finished"]
    if axis.values[0] not in done:
        return None
    columns = {total_column(name, plan.axes): name for name in METRICS}
    differences = paired_differences(
        summary, axis=axis.path, baseline=axis.values[0], columns=list(columns)
    ).to_pylist()
    rows: dict[str, Row] = {}
    for difference in differences:
        name, ends = (
            columns[difference["column"]],
            (("", "difference"), ("_low", "difference_low"), ("_high", "difference_high")),
        )
        value = difference[axis.path]
        row = rows.setdefault(value, {axis.path: value, "seeds": 0})
        row |= {f"{name}{end}": difference[key] for end, key in ends}
        row["seeds"] = max(row["seeds"], difference["pairs"])
    return (axis.path, list(rows.values())) if rows else None


def shown_columns(lines: list[Row], plan: Plan) -> list[str]:
    """The columns of means that answer a sweep: its axes, and what was measured."""
    several = len({line["buyer"] for line in lines} - {None}) > 1
    failed = any(line["failed"] for line in lines)
    return [
        *(axis.path for axis in plan.axes),
        *(["buyer"] if several else []),
        "runs",
        *(["failed"] if failed else []),
        *measured(lines),
    ]


def measured(lines: list[Row]) -> list[str]:
    """The metrics that have a number in some line."""
    return [name for name in METRICS if any(line[name] == line[name] for line in lines)]


def as_cells(lines: list[Row], plan: Plan) -> list[Row]:
    """Lines in which the value of an axis is text: a number, a name, or a list as JSON."""
    return [
        line | {axis.path: _value(line[axis.path]) for axis in plan.axes if axis.path in line}
        for line in lines
    ]


def failures(summary: pa.Table) -> list[str]:
    """How many runs failed, and the first reasons."""
    wrong = [row for row in summary.to_pylist() if row["outcome"] == "failed"]
    messages = dict.fromkeys(f"{row['stage']}: {row['message']}" for row in wrong)
    return [f"{len(wrong):,} runs failed; " + "\n".join(list(messages)[:5])] if wrong else []


def accuracies_beside(lines: list[Row]) -> list[str]:
    """The sentence about what the accuracies of a table are to be compared with, if it has any."""
    parts = []
    for name, words in BESIDE.items():
        means = sorted({line[name] for line in lines if line[name] == line[name]})
        if means:
            most = "" if means[0] == means[-1] else f" to {means[-1]:.1%}"
            parts.append(f"{words} {means[0]:.1%}{most}")
    return [f"To compare accuracies with: {', '.join(parts)}."] if parts else []


def _state(run: PlannedRun, finished: set[str]) -> str:
    if run.scenario is None:
        return "not valid"
    return "finished" if run.id in finished else "to do"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
