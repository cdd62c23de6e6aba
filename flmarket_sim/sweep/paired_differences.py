"""Differences between policies in the same worlds: a row of a sweep minus another of its seed.

Owners, bids, delays and noise do not depend on policies, so most of the variation between seeds
cancels. Intervals are Student's, 95 %, over seeds. The settings of one seed share its world, so
they are averaged first.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.statistics import Estimate, from_seeds

Key = tuple[Any, str]  # the replication, and the other settings that a pair must share
Row = dict[str, Any]


def paired_differences(
    summary: pa.Table,
    *,
    baseline: Any,
    columns: Sequence[str],
    axis: str | None = None,
    by: Sequence[str] = (),
) -> pa.Table:
    """The summary of a sweep (`fm.read_sweep`) compared with a baseline.

    The result has a row for each of `columns` and each value of `axis`, at each setting of `by`.
    `baseline` is the value of `axis` with which the others are compared. Without `axis` it is the
    summary of another sweep: then every run is compared with the run of that sweep that has its
    seed, buyer and axes. The two should differ in policies only: other owners are another world.
    Axes in neither `axis` nor `by` are averaged over.

    Columns: those of `axis` and `by`, then `column`, `pairs` (seeds that both have),
    `baseline_mean` (over those), `difference`, `difference_low` and `difference_high`. Runs that
    failed, and numbers that are missing, are in no pair.
    """
    axes = axes_of(summary)
    _known(by, [*axes, "buyer"], "axis")
    _known(columns, _totals(summary), "total")
    rows = _finished(summary)
    if axis is None:
        if not isinstance(baseline, pa.Table):
            raise InputError(
                "without an axis the baseline is the summary of another sweep, as fm.read_sweep "
                "gives it"
            )
        other = axes_of(baseline)
        if sorted(other) != sorted(axes):
            raise InputError(
                f"the sweeps have different axes: {', '.join(axes) or 'none'} and "
                f"{', '.join(other) or 'none'}"
            )
        _known(columns, _totals(baseline), "total")
        firsts, shared = _finished(baseline), axes
    else:
        _known([axis], axes, "axis")
        if axis in by:
            raise InputError(f"{axis} is compared: it cannot be in `by` too")
        firsts, shared = (
            [row for row in rows if row[axis] == baseline],
            [name for name in axes if name != axis],
        )
        if not firsts:
            values = ", ".join(str(value) for value in dict.fromkeys(row[axis] for row in rows))
            raise InputError(
                f"no finished run has {axis} = {baseline!r}; finished: {values or 'none'}"
            )
        rows = [row for row in rows if row[axis] != baseline]
    names = ([] if axis is None else [axis]) + list(by)
    fields = [summary.schema.field(name) for name in names]
    differences = []
    for cell in dict.fromkeys(tuple(row[name] for name in names) for row in rows):
        seconds = [row for row in rows if tuple(row[name] for name in names) == cell]
        point = dict(zip(names, cell, strict=True))
        base = [row for row in firsts if all(row[name] == point[name] for name in by)]
        differences += [point | _difference(base, seconds, column, shared) for column in columns]
    numbers = [
        (name, pa.float64())
        for name in ("baseline_mean", "difference", "difference_low", "difference_high")
    ]
    return pa.Table.from_pylist(
        differences, pa.schema([*fields, ("column", pa.string()), ("pairs", pa.int64()), *numbers])
    )


def axes_of(summary: pa.Table) -> list[str]:
    """The axes of a sweep's summary: its columns between `seed` and `buyer`."""
    names = summary.column_names
    if "seed" not in names or "buyer" not in names or "outcome" not in names:
        raise InputError(
            "this is not the summary of a sweep: it has no columns seed, buyer and outcome"
        )
    return list(names[names.index("seed") + 1 : names.index("buyer")])


def _totals(summary: pa.Table) -> list[str]:
    last = summary.column_names.index("message") if "message" in summary.column_names else -1
    return [
        name
        for name in summary.column_names[last + 1 :]
        if _is_number(summary.schema.field(name).type)
    ]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def paired(first: dict[Key, float], second: dict[Key, float]) -> Estimate:
    """Mean of second - first over the keys that both have, averaged within each replication."""
    less = _by_replication({key: second[key] - first[key] for key in _shared(first, second)})
    return from_seeds(np.array(list(less.values()), float))


def _difference(firsts: list[Row], seconds: list[Row], column: str, shared: list[str]) -> Row:
    first, second = _units(firsts, column, shared), _units(seconds, column, shared)
    estimate = paired(first, second)
    base = _by_replication({key: first[key] for key in _shared(first, second)})
    return {
        "column": column,
        "pairs": len(base),
        "baseline_mean": float(np.mean(list(base.values()))) if base else math.nan,
        "difference": estimate.mean,
        "difference_low": estimate.low,
        "difference_high": estimate.high,
    }


def _units(rows: list[Row], column: str, shared: list[str]) -> dict[Key, float]:
    """The finite numbers of a column by seed and by what a pair must share."""
    values = {
        (row["seed"], f"{[row[name] for name in shared]} {row['buyer']}"): row[column]
        for row in rows
    }
    return {
        key: float(value)
        for key, value in values.items()
        if value is not None and math.isfinite(value)
    }


def _shared(first: dict[Key, float], second: dict[Key, float]) -> list[Key]:
    return sorted(first.keys() & second.keys(), key=str)


def _by_replication(numbers: dict[Key, float]) -> dict[Any, float]:
    """The mean of each replication. The order of the numbers does not matter."""
    by_replication: dict[Any, list[float]] = {}
    for (replication, _), number in numbers.items():
        by_replication.setdefault(replication, []).append(number)
    ordered = sorted(by_replication.items(), key=lambda item: str(item[0]))
    return {replication: math.fsum(values) / len(values) for replication, values in ordered}


def _finished(summary: pa.Table) -> list[Row]:
    return [row for row in summary.to_pylist() if row["outcome"] == "finished"]


def _known(names: Iterable[str], allowed: Sequence[str], what: str) -> None:
    for name in names:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InputError(
                f"the sweep has no {what} {name!r}{hint} There are: {', '.join(allowed) or 'none'}"
            )
