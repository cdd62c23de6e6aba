"""The directory of a sweep: sweep.json, results in parts as they come, and the summary that is made of them.

SWEEP/
  sweep.json           the file's text, its hash, versions, what all runs share (overrides in it)
  parts/*.parquet      results, each part complete; of a run that is there twice, the last counts
  parts/latest.jsonl   results that are in no part yet, a line a run: what is done is not done again after a kill
  summary.parquet      one row a run and buyer, in the order of the plan; the same bytes for any number of workers
  timings.parquet      wall seconds of each run
  runs/ID/             event logs, where the sweep keeps them
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_run
from flmarket_sim.eventlog.totals import TOTALS
from flmarket_sim.market.run_folder import same_versions, versions
from flmarket_sim.storage.atomic_files import disk_error, write_parquet, write_text
from flmarket_sim.storage.result_folders import claim, lock
from flmarket_sim.storage.untrusted_files import read_json, read_parquet, require_columns
from flmarket_sim.sweep.sweep_plan import Axis, Plan

LATEST = "parts/latest.jsonl"
SECONDS_PER_PART = 2.0
SHARE_PER_PART = 0.02  # of the time so far: a sweep of days does not leave a hundred thousand parts
ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
OUTCOME = (
    ("buyer", pa.string()),
    ("outcome", pa.string()),
    ("stage", pa.string()),
    ("message", pa.string()),
)
PART = pa.schema(
    [
        ("run", pa.string()),
        *OUTCOME,
        ("seconds", pa.float64()),
        *((name, ARROW[kind]) for name, kind in TOTALS.items()),
    ]
)
Row = dict[str, Any]


class SweepFolder:
    """The directory of one plan, open for writing; only one at a time can be."""

    def __init__(self, path: str | Path, plan: Plan) -> None:
        self.path, self.plan = Path(path), plan
        if not (self.path / "sweep.json").exists():
            claim(self.path, "sweep")
        self._lock = lock(self.path, "sweep")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        plan = self.plan
        known = read_sweep_json(self.path) if (self.path / "sweep.json").exists() else None
        if known is not None and known.get("sha256") != plan.digest:
            raise InputError(
                f"{self.path} has another sweep ({known.get('name')}); name another directory with --out"
            )
        if known is None:
            facts = {
                "name": plan.name,
                "sha256": plan.digest,
                "runs": len(plan.runs),
                "axes": [a.path for a in plan.axes],
            }
            content = facts | {
                "seeds": list(plan.seeds),
                "versions": versions(),
                "scenario": plan.base,
                "file": plan.text,
            }
            with _full_disk_told(self.path):  # first of all: without it the directory is nobody's
                write_text(
                    self.path / "sweep.json",
                    json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n",
                )
        with _full_disk_told(self.path):
            (self.path / "parts").mkdir(exist_ok=True)
        self.results = _read_parts(self.path)
        self._pending = [row for rows in _read_latest(self.path).values() for row in rows]
        self._began = self._written = time.monotonic()
        if (
            known is not None
            and {run.id for run in plan.runs if run.scenario is not None} - self.finished()
        ):
            same_versions(self.path, self.path / "sweep.json", known.get("versions"))
        self.flush()
        (self.path / LATEST).unlink(
            missing_ok=True
        )  # a line that a kill has cut off: nothing may be written behind it

    def finished(self) -> set[str]:
        """Runs that need not be done again."""
        return _finished(self.path, self.results, self.plan.keep_events)

    def log_of(self, run: str) -> Path:
        return self.path / "runs" / run

    def add(self, rows: list[Row]) -> None:
        """The result of one run, a row a buyer; in a part a little later."""
        self.results[rows[0]["run"]] = rows
        self._pending += rows
        with _full_disk_told(self.path), (self.path / LATEST).open("a", encoding="utf-8") as file:
            file.write(json.dumps(rows) + "\n")
        now = time.monotonic()
        if now - self._written > max(SECONDS_PER_PART, SHARE_PER_PART * (now - self._began)):
            self.flush()

    def flush(self) -> None:
        if self._pending:
            parts = [
                int(part.stem.split("-")[1])
                for part in (self.path / "parts").glob("part-*.parquet")
            ]
            name = f"part-{max(parts, default=-1) + 1:06d}.parquet"
            _write(self.path / "parts" / name, pa.Table.from_pylist(self._pending, PART))
            (self.path / LATEST).unlink(missing_ok=True)
        self._pending, self._written = [], time.monotonic()

    def write_summary(self) -> pa.Table:
        """The rows of all runs that have a result so far."""
        self.flush()
        names = {name: total_column(name, self.plan.axes) for name in TOTALS}
        rows = []
        for run in self.plan.runs:
            found = self.results.get(run.id, [])
            if run.scenario is None:
                found = [failed(run.id, "scenario", run.problem)]
            axes = {axis.path: _cell(axis, run.point[axis.path]) for axis in self.plan.axes}
            for row in found:
                told = {key: row[key] for key, _ in OUTCOME} | {
                    names[key]: row.get(key) for key in TOTALS
                }
                rows.append({"run": run.id, "seed": run.seed} | axes | told)
        fields = [
            ("run", pa.string()),
            ("seed", pa.int64()),
            *((a.path, ARROW[_kind(a)]) for a in self.plan.axes),
            *OUTCOME,
        ]
        schema = pa.schema(fields + [(names[name], ARROW[kind]) for name, kind in TOTALS.items()])
        table = pa.Table.from_pylist(
            rows, schema.with_metadata({"flmarket_sweep": self.plan.digest})
        )
        _write(self.path / "summary.parquet", table)
        timed = [
            {"run": run.id, "seconds": self.results[run.id][0]["seconds"]}
            for run in self.plan.runs
            if run.id in self.results
        ]
        _write(
            self.path / "timings.parquet",
            pa.Table.from_pylist(timed, pa.schema([PART.field("run"), PART.field("seconds")])),
        )
        return table

    def close(self) -> None:
        os.close(self._lock)


def finished_runs(directory: Path, plan: Plan) -> set[str]:
    """What a sweep in this directory need not do again; looks and touches nothing."""
    if (
        not (directory / "sweep.json").exists()
        or read_sweep_json(directory).get("sha256") != plan.digest
    ):
        return set()
    return _finished(directory, _read_parts(directory), plan.keep_events)


def failed(run: str, stage: str, message: str, seconds: float | None = None) -> Row:
    """The row of a run without totals."""
    return {
        "run": run,
        "buyer": None,
        "outcome": "failed",
        "stage": stage,
        "message": message,
        "seconds": seconds,
    }


def total_column(name: str, axes: tuple[Axis, ...]) -> str:
    """The column of a total: its name, unless an axis has that (`rounds`, `budget`)."""
    return f"total_{name}" if any(axis.path == name for axis in axes) else name


def read_sweep(directory: str | Path) -> pa.Table:
    """The summary of a sweep: one row a run and buyer, with a column for each axis."""
    read_sweep_json(Path(directory))
    path = Path(directory) / "summary.parquet"
    try:
        return read_parquet(path, pa.schema([("run", pa.string()), ("seed", pa.int64()), *OUTCOME]))
    except FileNotFoundError:
        raise InputError(
            f"{directory} has no summary: its sweep is running, or was killed; run it again to go on"
        ) from None


def read_sweep_json(directory: Path) -> dict[str, Any]:
    """What sweep.json says."""
    path = directory / "sweep.json"
    try:
        return read_json(path)
    except FileNotFoundError:
        raise InputError(
            f"{directory} is not the directory of a sweep: it has no sweep.json"
        ) from None


def _finished(folder: Path, results: dict[str, list[Row]], with_logs: bool) -> set[str]:
    done = {run for run, rows in results.items() if rows[0]["outcome"] == "finished"}
    return {run for run in done if _has_log(folder / "runs" / run)} if with_logs else done


def _has_log(run: Path) -> bool:
    """Whether a run's log is there to its end; a power cut can leave a directory without its files."""
    try:
        return read_run(run).get("outcome") == "finished"
    except InputError:
        return False


def _read_parts(folder: Path) -> dict[str, list[Row]]:
    results: dict[str, list[Row]] = {}
    for part in sorted((folder / "parts").glob("part-*.parquet")):
        try:
            table = read_parquet(part, PART)
            require_columns(part, table, PART.names)
            rows = table.to_pylist()
        except InputError as error:
            raise InputError(f"{error}; delete it, and its runs are done again") from None
        fresh: dict[str, list[Row]] = {}
        for row in rows:
            fresh.setdefault(row["run"], []).append(row)
        results |= fresh
    return results | _read_latest(folder)


def _read_latest(folder: Path) -> dict[str, list[Row]]:
    """Results that are in no part yet. A line that a kill has cut off is no result."""
    results: dict[str, list[Row]] = {}
    try:
        lines = (folder / LATEST).read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        return results
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder / LATEST} cannot be read: {error}; delete it, and its runs are done again"
        ) from None
    for line in lines:
        try:
            rows = json.loads(line) if line.endswith("\n") else []
            if rows:
                results[rows[0]["run"]] = [
                    {name: row.get(name) for name in PART.names} for row in rows
                ]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                f"{folder / LATEST} is damaged; delete it, and its runs are done again"
            ) from None
    return results


def _kind(axis: Axis) -> type:
    """The type of an axis' column; what has no common type is JSON."""
    kinds = {type(value) for value in axis.values}
    if kinds <= {int, float} and float in kinds:
        return float
    fits = kinds == {int} and all(abs(value) < 2**63 for value in axis.values)
    return kinds.pop() if fits or kinds in ({str}, {bool}) else str


def _cell(axis: Axis, value: Any) -> Any:
    kind = _kind(axis)
    if kind is str and {type(v) for v in axis.values} != {str}:
        return json.dumps(value, ensure_ascii=False, default=str)
    return kind(value)


def _write(path: Path, table: pa.Table) -> None:
    with _full_disk_told(path):
        write_parquet(path, table)


@contextmanager
def _full_disk_told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(
            path, error, "Free some space; the same command then goes on from what is there"
        ) from error
