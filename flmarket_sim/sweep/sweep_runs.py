"""Runs a sweep: every planned run is a task of the engine, and a failed run is a row."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.author_frames import failure_text
from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import read_events, read_run
from flmarket_sim.eventlog.summary import yardsticks_of
from flmarket_sim.eventlog.totals import buyers_totals
from flmarket_sim.experiments import engine
from flmarket_sim.experiments.engine import Failure, Progress
from flmarket_sim.experiments.market_runs import data_key, load_data
from flmarket_sim.experiments.packed_folder import Files, pack, unpack
from flmarket_sim.experiments.worker_processes import Crew, Processes
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market import simulation
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import remove_folder, settle
from flmarket_sim.sweep.sweep_folder import RunFailure, SweepFolder
from flmarket_sim.sweep.sweep_plan import Plan

Row = dict[str, Any]
Result = Row | RunFailure


@dataclass(frozen=True)
class RunTask:
    """One run of a sweep. Its events go to the directory `log`, if the sweep keeps them."""

    run: str
    key: str
    scenario: Scenario
    log: Path | None

    @property
    def label(self) -> str:
        return f"run {self.run[:12]}"


def run_sweep(
    plan: Plan,
    out: str | Path,
    workers: int = 1,
    progress: Progress | None = None,
    crew: Crew | None = None,
) -> pa.Table:
    """Does the runs that are not done yet, and returns the summary.

    An interrupted sweep writes its summary too. `progress(done, total)` counts all runs, also those
    of an earlier call. Without a `crew`, `workers` processes of this machine do the runs.
    """
    doers: Crew = crew or Processes(workers)
    measure: Callable[[RunTask], Any] = perform if doers.shares_disk else perform_away
    failures: dict[str, Failure] = {}
    with SweepFolder(out, plan) as folder:
        results = engine.perform(
            _tasks(plan, folder),
            measure,
            crew=doers,
            store=folder.store,
            progress=progress,
            receive=None if doers.shares_disk else _receive,
        )
        try:
            with closing(results):
                for task, result in results:
                    if isinstance(result, Failure):
                        failures[task.run] = result
        except BaseException:
            folder.write_summary(failures)
            raise
        return folder.write_summary(failures)


def _tasks(plan: Plan, folder: SweepFolder) -> list[RunTask]:
    """Each run once. Runs that share a data set are next to each other."""
    tasks = {
        run.id: RunTask(
            run.id,
            plan.keys[run.id],
            run.scenario,
            folder.log_of(run.id) if plan.keep_events else None,
        )
        for run in plan.runs
        if run.scenario is not None
    }
    places: dict[str, int] = {}
    for task in tasks.values():
        places.setdefault(data_key(task.scenario), len(places))
    return sorted(tasks.values(), key=lambda task: places[data_key(task.scenario)])


def perform(task: RunTask) -> Result:
    """One run in this process: its wall seconds and the totals of each buyer, or a failure."""
    began, stage = time.perf_counter(), "data"
    try:
        data = load_data(task.scenario)
        stage = "market"
        buyers = [buyer.name for buyer in task.scenario.resolved_buyers()]
        rounds = (
            simulation.rounds_only(task.scenario, data)
            if task.log is None
            else _logged(task.scenario, data, task.log)
        )
        stage = "summary"
        known = (
            simulation.accuracy_yardsticks(task.scenario, data)
            if task.log is None
            else yardsticks_of(read_run(task.log))
        )
        totals = buyers_totals(rounds, buyers, known)
    except (Exception, SystemExit) as error:  # a plug-in can fail in any way
        message = failure_text(error, own=isinstance(error, FlmarketError))
        return RunFailure(message, stage=stage, seconds=time.perf_counter() - began)
    return {"seconds": time.perf_counter() - began, "totals": totals}


def perform_away(task: RunTask) -> tuple[Result, Files]:
    """One run where the sweep's directory may be out of reach: the log comes back as bytes."""
    if task.log is None:
        return perform(task), {}
    with tempfile.TemporaryDirectory(prefix="flmarket-run-", ignore_cleanup_errors=True) as aside:
        log = Path(aside) / task.log.name
        result = perform(replace(task, log=log))
        try:
            return result, pack(log)
        except (FlmarketError, OSError) as error:
            return RunFailure(str(error), stage="log"), {}


def _receive(task: RunTask, answer: tuple[Result, Files]) -> Result:
    """Writes the log of a run that was done elsewhere."""
    result, files = answer
    if task.log is not None and files:
        unpack(files, task.log)
    return result


def _logged(scenario: Scenario, data: Dataset | None, log: Path) -> list[Row]:
    """Runs into a hidden directory that gets its name when the run has ended.

    A failed run keeps its log: the log shows how far the run came.
    """
    hidden = log.with_name(f".{log.name}.tmp")
    for old in (hidden, log):
        remove_folder(old)
    try:
        simulation.run(scenario, hidden, data=data)
    finally:
        if hidden.exists():
            settle(hidden, log)
    rounds: list[Row] = read_events(log, "round").to_pylist()
    return rounds
