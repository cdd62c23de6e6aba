"""Runs a sweep: each planned run in a process, its totals into the sweep's directory, failures as rows."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import read_events
from flmarket_sim.eventlog.totals import buyers_totals
from flmarket_sim.experiments.market_runs import data_key, load_data
from flmarket_sim.experiments.packed_folder import Files, pack, unpack
from flmarket_sim.experiments.worker_processes import Crew, Died, Processes
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market import simulation
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import settle
from flmarket_sim.sweep.sweep_folder import Row, SweepFolder, failed
from flmarket_sim.sweep.sweep_plan import Plan


@dataclass(frozen=True)
class Task:
    """What a process needs for a run; `log` is where its events go, if they are wanted."""

    run: str
    scenario: Scenario
    log: Path | None


def run_sweep(
    plan: Plan,
    out: str | Path,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    crew: Crew | None = None,
) -> pa.Table:
    """Does what is not done yet, and returns the summary, which is also written when the sweep is interrupted.

    `progress(done, total)` counts the runs of this call: what an earlier one finished costs no time. Without a `crew`,
    `workers` processes of this machine do the runs.
    """
    doers: Crew = crew or Processes(workers)
    function: Callable[[Task], Any] = perform if doers.shares_disk else perform_away
    folder = SweepFolder(out, plan)
    try:
        done = folder.finished()
        tasks = _tasks(plan, folder, done)
        if progress is not None:
            progress(0, len(tasks))
        try:
            with closing(doers.perform(function, tasks)) as results:
                for count, (task, result) in enumerate(results, 1):
                    folder.add(_received(task, result))
                    if progress is not None:
                        progress(count, len(tasks))
        except BaseException:
            folder.write_summary()
            raise
        return folder.write_summary()
    finally:
        folder.close()


def _tasks(plan: Plan, folder: SweepFolder, done: set[str]) -> list[Task]:
    """Each run once, those that share a data set next to each other."""
    tasks = {
        run.id: Task(run.id, run.scenario, folder.log_of(run.id) if plan.keep_events else None)
        for run in plan.runs
        if run.scenario is not None and run.id not in done
    }
    places: dict[str, int] = {}
    for task in tasks.values():
        places.setdefault(data_key(task.scenario), len(places))
    return sorted(tasks.values(), key=lambda task: places[data_key(task.scenario)])


def perform(task: Task) -> list[Row]:
    """One run in this process: a row for each buyer, or one that says where it failed and why."""
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
        totals = buyers_totals(rounds, buyers)
    except (
        Exception,
        SystemExit,
    ) as error:  # plug-ins are foreign code; whatever they do, the sweep goes on
        message = (
            str(error) if isinstance(error, FlmarketError) else f"{type(error).__name__}: {error}"
        )
        return [failed(task.run, stage, message, time.perf_counter() - began)]
    ending = {
        "run": task.run,
        "outcome": "finished",
        "stage": None,
        "message": None,
        "seconds": time.perf_counter() - began,
    }
    return [ending | {"buyer": name} | numbers for name, numbers in totals.items()]


def perform_away(task: Task) -> tuple[list[Row], Files]:
    """The same where the sweep's directory may be out of reach: the log is written aside and comes back as bytes."""
    if task.log is None:
        return perform(task), {}
    with tempfile.TemporaryDirectory(prefix="flmarket-run-", ignore_cleanup_errors=True) as aside:
        log = Path(aside) / task.log.name
        rows = perform(replace(task, log=log))
        try:
            return rows, pack(log)
        except (FlmarketError, OSError) as error:
            return [failed(task.run, "log", str(error), rows[0]["seconds"])], {}


def _received(task: Task, result: list[Row] | tuple[list[Row], Files] | Died) -> list[Row]:
    """The rows of a run, with its log in place."""
    if isinstance(result, Died):
        return [failed(task.run, "worker", str(result))]
    if isinstance(result, list):
        return result
    rows, files = result
    if task.log is not None and files:
        unpack(files, task.log)
    return rows


def _logged(scenario: Scenario, data: Dataset | None, log: Path) -> list[Row]:
    """Runs into a hidden directory that gets its name when it is complete, also after a failure: the log says how far it came."""
    hidden = log.with_name(f".{log.name}.tmp")
    for old in (hidden, log):
        shutil.rmtree(old, ignore_errors=True)
    try:
        simulation.run(scenario, hidden, data=data)
    finally:
        if hidden.exists():
            settle(hidden, log)
    rounds: list[Row] = read_events(log, "round").to_pylist()
    return rounds
