"""The directory of a sweep.

SWEEP/
  sweep.json        the file's text, its hash, versions, and the tables that all runs share
  tasks.jsonl       results of finished runs as the engine stores them, a line for each run
  summary.parquet   a row for each run and buyer, in the order of the plan; the same bytes for any
                    number of workers
  timings.parquet   wall seconds of each run
  files.json        hashes of summary and timings; sweep.json has a hash of itself
  runs/ID/          event logs, if the sweep keeps them
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import read_run
from flmarket_sim.eventlog.totals import TOTALS
from flmarket_sim.experiments.engine import Failure
from flmarket_sim.experiments.store import ADVICE, FileStore, read_results
from flmarket_sim.market.provenance import same_versions, versions
from flmarket_sim.storage.atomic_files import disk_error, write_parquet, write_text
from flmarket_sim.storage.result_folders import claim, give_up
from flmarket_sim.storage.sealed_files import (
    HASH_LIST,
    SEAL,
    check_file,
    file_hash,
    read_hash_list,
    read_sealed,
    sealed,
    write_hash_list,
)
from flmarket_sim.storage.untrusted_files import check_shape, read_parquet
from flmarket_sim.sweep.stored_shapes import RunResult, SweepFacts
from flmarket_sim.sweep.sweep_plan import Axis, Plan, PlannedRun

TASKS = "tasks.jsonl"
TABLES = ("summary.parquet", "timings.parquet")
CONTINUE = "The same `flmarket sweep` again writes it anew from tasks.jsonl"
DO_AGAIN = "Run the sweep again into another directory"
ARROW = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
OUTCOME = (
    ("buyer", pa.string()),
    ("outcome", pa.string()),
    ("stage", pa.string()),
    ("message", pa.string()),
)
TIMINGS = pa.schema([("run", pa.string()), ("seconds", pa.float64())])
Row = dict[str, Any]


@dataclass(frozen=True)
class RunFailure(Failure):
    """A run that failed: in which stage, and after how many wall seconds, where that is known."""

    stage: str = "worker"
    seconds: float | None = None


class SweepFolder:
    """The directory of one plan, open for writing. Only one process can have it open.

    It is a context manager. `store` holds the results of finished runs.
    """

    def __init__(self, path: str | Path, plan: Plan) -> None:
        self.path, self.plan = Path(path), plan
        self.store = FileStore(self.path / TASKS, RunResult)
        self._resources = ExitStack()

    def __enter__(self) -> SweepFolder:
        is_new = not (self.path / "sweep.json").exists()
        if is_new:
            claim(self.path, "sweep")
            try:
                self._write_request()
            finally:
                give_up(self.path)
        known = read_sweep_json(self.path)
        if known.get("sha256") != self.plan.digest:
            raise InputError(
                f"{self.path} has another sweep ({known.get('name')}); name another directory with "
                "`out`"
            )
        if (self.path / "parts").exists():
            raise InputError(
                f"{self.path} has a sweep of an older version of flmarket-sim, which cannot be "
                "continued. Its summary can be read; to do its runs again, name another directory "
                "with `out`"
            )
        with self._resources:
            self._resources.enter_context(self.store)
            self._forget_lost_logs()
            if not is_new and set(self.plan.keys) - self.finished():
                same_versions(self.path, self.path / "sweep.json", known.get("versions"))
            self._resources = self._resources.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def finished(self) -> set[str]:
        """Runs that need not be done again."""
        return {run for run, key in self.plan.keys.items() if key in self.store}

    def log_of(self, run: str) -> Path:
        return self.path / "runs" / run

    def write_summary(self, failures: Mapping[str, Failure]) -> pa.Table:
        """Writes summary and timings of all runs that have a result or failed in this call."""
        names = {name: total_column(name, self.plan.axes) for name in TOTALS}
        rows, timings = [], []
        for run in self.plan.runs:
            ends, seconds = self._ends(run, failures.get(run.id))
            point = {axis.path: _cell(axis, run.point[axis.path]) for axis in self.plan.axes}
            for end in ends:
                outcome = {key: end[key] for key, _ in OUTCOME}
                totals = {names[key]: end.get(key) for key in TOTALS}
                rows.append({"run": run.id, "seed": run.seed} | point | outcome | totals)
            if ends and run.scenario is not None:
                timings.append({"run": run.id, "seconds": seconds})
        table = pa.Table.from_pylist(rows, self._schema(names))
        with _disk_errors(self.path):
            (self.path / HASH_LIST).unlink(missing_ok=True)  # a kill leaves no wrong hashes
        _write(self.path / "summary.parquet", table)
        _write(self.path / "timings.parquet", pa.Table.from_pylist(timings, TIMINGS))
        with _disk_errors(self.path):
            hashes = {name: file_hash(self.path / name) for name in TABLES}
            write_hash_list(self.path, hashes, self.plan.digest)
        return table

    def _ends(self, run: PlannedRun, failure: Failure | None) -> tuple[list[Row], float | None]:
        """How a run ended, a row for each buyer, and its wall seconds; no row if it has not."""
        if run.scenario is None:
            failure = RunFailure(run.problem, stage="scenario")
        if failure is not None:
            known = failure if isinstance(failure, RunFailure) else RunFailure(failure.message)
            end = {"outcome": "failed", "stage": known.stage, "message": known.message}
            return [{"buyer": None} | end], known.seconds
        key = self.plan.keys[run.id]
        if key not in self.store:
            return [], None
        result = self.store[key]
        finished = {"outcome": "finished", "stage": None, "message": None}
        ends = [{"buyer": name} | finished | totals for name, totals in result["totals"].items()]
        return ends, result["seconds"]

    def _schema(self, names: dict[str, str]) -> pa.Schema:
        fields = [
            ("run", pa.string()),
            ("seed", pa.int64()),
            *((axis.path, ARROW[_kind(axis)]) for axis in self.plan.axes),
            *OUTCOME,
            *((names[name], ARROW[kind]) for name, kind in TOTALS.items()),
        ]
        return pa.schema(fields).with_metadata({"flmarket_sweep": self.plan.digest})

    def _write_request(self) -> None:
        """Writes sweep.json, which marks the directory as one of a sweep."""
        plan = self.plan
        content = {
            "name": plan.name,
            "sha256": plan.digest,
            "runs": len(plan.runs),
            "axes": [axis.path for axis in plan.axes],
            "seeds": list(plan.seeds),
            "versions": versions(),
            "scenario": plan.base,
            "file": plan.text,
        }
        text = json.dumps(sealed(content), indent=2, ensure_ascii=False, default=str) + "\n"
        with _disk_errors(self.path):
            write_text(self.path / "sweep.json", text)

    def _forget_lost_logs(self) -> None:
        """Runs whose kept log is not complete are done again."""
        if self.plan.keep_events:
            for run in self.finished():
                if not _has_log(self.log_of(run)):
                    self.store.forget(self.plan.keys[run])


def finished_runs(directory: Path, plan: Plan) -> set[str]:
    """The runs that a sweep in this directory need not do again. Nothing is changed."""
    if (
        not (directory / "sweep.json").exists()
        or read_sweep_json(directory).get("sha256") != plan.digest
    ):
        return set()
    results = read_results(directory / TASKS, RunResult)
    done = {run for run, key in plan.keys.items() if key in results}
    return {run for run in done if not plan.keep_events or _has_log(directory / "runs" / run)}


def total_column(name: str, axes: tuple[Axis, ...]) -> str:
    """The column of a total: its name, unless an axis has that name (`rounds`, `budget`)."""
    return f"total_{name}" if any(axis.path == name for axis in axes) else name


def read_sweep(directory: str | Path) -> pa.Table:
    """The summary of a sweep: a row for each run and buyer, with a column for each axis."""
    path = Path(directory) / "summary.parquet"
    hashes = read_hashes(Path(directory), read_sweep_json(Path(directory))) or {}
    if path.name in hashes:
        check_file(path, hashes[path.name], HASH_LIST, CONTINUE)
    try:
        return read_parquet(path, pa.schema([("run", pa.string()), ("seed", pa.int64()), *OUTCOME]))
    except FileNotFoundError:
        raise InputError(
            f"{directory} has no summary: its sweep is running or was killed; the same command "
            "continues it"
        ) from None


def read_sweep_json(directory: Path) -> dict[str, Any]:
    """The content of sweep.json."""
    try:
        content = read_sealed(directory / "sweep.json", DO_AGAIN)
        check_shape(directory / "sweep.json", content, SweepFacts)
        read_hash_list(directory, CONTINUE, str(content.get("sha256", "")))
        return content
    except FileNotFoundError:
        raise InputError(
            f"{directory} is not the directory of a sweep: it has no sweep.json"
        ) from None


def read_hashes(directory: Path, facts: Mapping[str, Any]) -> dict[str, str] | None:
    """The hashes of summary and timings; None before there is a summary.

    `facts` is the content of sweep.json. Sweeps of earlier versions have hashes of nothing. A sweep
    that has one in sweep.json has them of its summary too, unless a kill came in between.
    """
    hashes = read_hash_list(directory, CONTINUE)
    if hashes is None and SEAL in facts and (directory / "summary.parquet").exists():
        raise InputError(
            f"{directory / HASH_LIST} is lost: it has the hash of summary.parquet, which cannot be "
            f"checked without it. {CONTINUE}"
        )
    return hashes


def _has_log(run: Path) -> bool:
    """Whether a run's log is complete. A power cut can leave a directory without its files."""
    try:
        return read_run(run).get("outcome") == "finished"
    except InputError:
        return False


def _kind(axis: Axis) -> type:
    """The type of an axis' column. Values without a common type become JSON texts."""
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
    with _disk_errors(path):
        write_parquet(path, table)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise disk_error(path, error, ADVICE) from error
