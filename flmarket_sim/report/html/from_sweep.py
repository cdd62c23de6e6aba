"""A sweep's directory as part of a page: totals against the axes, with intervals over seeds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.report.html.from_study import table
from flmarket_sim.report.html.generic import chart, is_number
from flmarket_sim.report.html.parts import ROWS, Source, Table, evenly, flattened, sampled
from flmarket_sim.statistics import Estimate, from_seeds
from flmarket_sim.storage.untrusted_files import rows_of
from flmarket_sim.studies.study import spread
from flmarket_sim.sweep.paired_differences import axes_of, paired_differences
from flmarket_sim.sweep.sweep_folder import read_sweep, read_sweep_json

Row = dict[str, Any]
FACTS = ("run", "seed", "buyer", "outcome", "stage", "message")  # neither axis nor total
FIRST = (
    "mean_error_bound",
    "final_accuracy",
    "final_balanced_accuracy",
    "noiseless_accuracy",
    "constant_guess",
    "spent",
    "privacy_sold",
    "owners_surplus",
)
# Sweeps must share these tables for paired differences.
WORLD = ("data", "owners", "market", "budget", "rounds", "buyers")
OVER_SEEDS = "Means of seeds; intervals are Student's, 95 %, over seeds."


def read(path: Path) -> Source:
    facts = read_sweep_json(path)
    summary = read_sweep(path)
    rows = rows_of(path / "summary.parquet", summary)
    if not rows:
        raise InputError(
            f"{path / 'summary.parquet'} has no rows: the sweep has not finished a run yet"
        )
    scenario = facts.get("scenario") or {}
    axes = axes_of(summary)
    done = [row for row in rows if row["outcome"] == "finished"]
    failed = [row for row in rows if row["outcome"] != "finished"]
    totals = _totals(done, axes)
    cells = [*axes, "buyer"] if len({row.get("buyer") for row in done}) > 1 else axes
    means = _means(done, cells, totals)
    seeds = list(dict.fromkeys(row.get("seed") for row in rows))
    figures = [
        chart(f"sweep-{name}", name.replace("_", " "), name, means, cells, OVER_SEEDS)
        for name in totals
    ]
    return Source(
        label=path.resolve().name,
        kind="sweep",
        title=str(scenario.get("name") or facts.get("name") or path.resolve().name),
        description=str(scenario.get("description", "")),
        notices=[
            f"{len(failed)} of {len(rows)} rows are of runs that did not finish; "
            "they are in no mean."
        ]
        if failed
        else [],
        cards=[
            ("rows", f"{len(rows):,}"),
            ("seeds", str(len(seeds))),
            ("axes", ", ".join(axes) or "none"),
        ],
        charts=[figure for figure in figures if figure is not None],
        tables=[
            *_tables(means),
            *_differences(summary, done, axes, totals),
            *_failures(failed, axes),
        ],
        measures={name.replace("_", " "): from_seeds(_by_seed(done, name)) for name in totals},
        settings=flattened(scenario),
        provenance=_provenance(facts, seeds),
        world=json.dumps([*(scenario.get(part) for part in WORLD), sorted(axes)], sort_keys=True)
        if scenario
        else "",
        replications="seeds",
        units={name.replace("_", " "): _units(done, name, axes) for name in totals},
    )


def _totals(rows: list[Row], axes: list[str]) -> list[str]:
    numeric = [
        name
        for name in (rows[0] if rows else {})
        if name not in axes and name not in FACTS and any(is_number(row[name]) for row in rows)
    ]
    return [name for name in FIRST if name in numeric] + [
        name for name in numeric if name not in FIRST
    ]


def _number(value: Any) -> float:
    return float(value) if is_number(value) else math.nan


def _cell(row: Row, axes: list[str]) -> tuple[str, ...]:
    return tuple(str(row[axis]) for axis in axes)


def _means(rows: list[Row], axes: list[str], totals: list[str]) -> list[Row]:
    """One row for each combination of the axes."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_cell(row, axes), []).append(row)
    means = []
    for group in groups.values():
        mean: Row = {axis: group[0][axis] for axis in axes} | {"runs": len(group)}
        for name in totals:
            mean |= spread(name, from_seeds(_by_seed(group, name)))
        means.append(mean)
    return means


def _by_seed(rows: list[Row], name: str) -> Any:
    """A mean for each seed: the runs of a seed share a world, so they are one replication."""
    seeds: dict[Any, list[float]] = {}
    for row in rows:
        if is_number(row.get(name)) and math.isfinite(row[name]):
            seeds.setdefault(row.get("seed"), []).append(float(row[name]))
    return np.array([np.mean(values) for values in seeds.values()])


def _tables(means: list[Row]) -> list[Table]:
    sample = evenly(means, ROWS)
    note = f"{OVER_SEEDS} {sampled(len(sample), len(means), 'rows')}".strip()
    return [table("sweep", "Totals", sample, note)] if sample else []


def _units(rows: list[Row], name: str, axes: list[str]) -> dict[tuple[Any, str], float]:
    values = {
        (row.get("seed"), f"{_cell(row, axes)} {row.get('buyer')}"): _number(row.get(name))
        for row in rows
    }
    return {key: value for key, value in values.items() if math.isfinite(value)}


def _differences(
    summary: pa.Table, rows: list[Row], axes: list[str], totals: list[str]
) -> list[Table]:
    """Differences from the first value of the first axis of names, other settings being equal."""
    axis = next(
        (
            name
            for name in axes
            if len({row[name] for row in rows}) > 1 and isinstance(rows[0][name], str)
        ),
        None,
    )
    if axis is None:
        return []
    first = rows[0][axis]
    lines: dict[str, list[Any]] = {}
    for pair in paired_differences(summary, axis=axis, baseline=first, columns=totals).to_pylist():
        less = Estimate(pair["difference"], pair["difference_low"], pair["difference_high"])
        lines.setdefault(pair[axis], [pair[axis]]).append(less)
    columns = [axis, *(name.replace("_", " ") for name in totals)]
    note = (
        "Paired: the same seed and the same other settings. "
        "Intervals are Student's, 95 %, over seeds."
    )
    return [Table("paired", f"Differences to {first}", columns, list(lines.values()), note)]


def _failures(rows: list[Row], axes: list[str]) -> list[Table]:
    if not rows:
        return []
    sample = evenly(rows, ROWS)
    columns = [
        name for name in ("run", "seed", *axes, "outcome", "stage", "message") if name in rows[0]
    ]
    cells = [[row[name] for name in columns] for row in sample]
    return [
        Table(
            "failures",
            "Runs that did not finish",
            columns,
            cells,
            sampled(len(sample), len(rows), "rows"),
        )
    ]


def _provenance(facts: Row, seeds: list[Any]) -> dict[str, str]:
    origin = {"sha256": str(facts["sha256"])} if facts.get("sha256") else {}
    versions = facts.get("versions")
    if isinstance(versions, dict):
        origin |= {f"{name} version": str(version) for name, version in versions.items()}
    return origin | {"seeds": ", ".join(map(str, seeds[:50])) + (" ..." if len(seeds) > 50 else "")}
