"""A sweep for people: the table of planned runs, and means over the seeds of finished runs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from flmarket_sim.statistics import from_seeds
from flmarket_sim.studies.study import spread
from flmarket_sim.sweep.paired_differences import paired_differences
from flmarket_sim.sweep.sweep_folder import total_column
from flmarket_sim.sweep.sweep_plan import Plan, PlannedRun

MOST_LINES = 60  # combinations that a terminal shows
METRICS = ("mean_error_bound", "spent", "owners_surplus", "privacy_sold", "final_accuracy")
Row = dict[str, Any]


def plan_rows(plan: Plan, finished: set[str]) -> list[Row]:
    """An entry for each run, as `--plan --json` prints them."""
    return [
        {"run": run.id, "seed": run.seed}
        | run.point
        | {"state": _state(run, finished), "problem": run.problem or None}
        for run in plan.runs
    ]


def plan_table(plan: Plan, finished: set[str]) -> RenderableType:
    """A line for each combination, with its seeds and the number of runs to do."""
    table = _table([*(axis.path for axis in plan.axes), "seeds", "to do"])
    by_point = [
        plan.runs[first : first + len(plan.seeds)]
        for first in range(0, len(plan.runs), len(plan.seeds))
    ]
    for runs in by_point[:MOST_LINES]:
        left = sum(_state(run, finished) == "to do" for run in runs)
        state = f"not valid: {runs[0].problem}" if runs[0].scenario is None else str(left)
        table.add_row(
            *(Text(_value(value)) for value in runs[0].point.values()),
            Text(_seeds(plan.seeds)),
            Text(state),
        )
    if len(by_point) > MOST_LINES:
        table.add_row(*["..."] * len(plan.axes), "", f"and {len(by_point) - MOST_LINES:,} more")
    states = [_state(run, finished) for run in plan.runs]
    counts = (
        f"{len(plan.runs):,} runs: {states.count('to do'):,} to do, "
        f"{states.count('finished'):,} finished before"
    )
    wrong = f", {states.count('not valid'):,} not valid" if "not valid" in states else ""
    return Group(table, Text(counts + wrong))


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
            for name in METRICS:
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


def _differences_table(
    axis: str, first: str, rows: list[Row], measured: list[str]
) -> list[RenderableType]:
    table = _table(
        [f"{axis} less {first}", "seeds", *(name.replace("_", " ") for name in measured)]
    )
    for row in rows[:MOST_LINES]:
        table.add_row(
            Text(row[axis]), str(row["seeds"]), *(Text(_interval(row, name)) for name in measured)
        )
    return [
        table,
        Text(
            "Differences in the same worlds, seed by seed, means over the other axes; ± as above."
        ),
    ]


def render(summary: pa.Table, plan: Plan, directory: str) -> RenderableType:
    lines = means(summary, plan)
    several = len({line["buyer"] for line in lines} - {None}) > 1
    measured = [name for name in METRICS if any(line[name] == line[name] for line in lines)]
    heads = [*(axis.path for axis in plan.axes), *(["buyer"] if several else []), "runs", *measured]
    table = _table([head.replace("_", " ") if head in METRICS else head for head in heads])
    for line in lines[:MOST_LINES]:
        runs = f"{line['runs']}" + (f", {line['failed']} failed" if line["failed"] else "")
        front = [_value(line[axis.path]) for axis in plan.axes] + (
            [line["buyer"] or ""] if several else []
        )
        table.add_row(
            *(Text(cell) for cell in [*front, runs, *(_interval(line, name) for name in measured)])
        )
    if len(lines) > MOST_LINES:
        table.add_row("...", *[""] * (len(heads) - 1))
    parts: list[RenderableType] = [
        table,
        Text("Means over seeds; ± is half of Student's 95 % interval."),
    ]
    compared = differences(summary, plan)
    if compared is not None:
        axis = next(axis for axis in plan.axes if axis.path == compared[0])
        parts += _differences_table(axis.path, axis.values[0], compared[1], measured)
    wrong = [row for row in summary.to_pylist() if row["outcome"] == "failed"]
    messages = dict.fromkeys(f"{row['stage']}: {row['message']}" for row in wrong)
    parts += (
        [Text(f"{len(wrong):,} runs failed; " + "\n".join(list(messages)[:5]))] if wrong else []
    )
    return Group(*parts, Text(f"Every run is a row of {directory}/summary.parquet"))


def _state(run: PlannedRun, finished: set[str]) -> str:
    if run.scenario is None:
        return "not valid"
    return "finished" if run.id in finished else "to do"


def _table(heads: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for head in heads:
        table.add_column(Text(head), overflow="fold")
    return table


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _seeds(seeds: tuple[int, ...]) -> str:
    if len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _interval(line: Row, name: str) -> str:
    mean, low, high = line[name], line[f"{name}_low"], line[f"{name}_high"]
    if mean != mean:
        return ""
    digits = ",.0f" if abs(mean) >= 1000 else ".3g"
    return f"{mean:{digits}}" if low != low else f"{mean:{digits}} ± {(high - low) / 2:{digits}}"
