"""A sweep on Dask workers, beside the same sweep in processes of this machine and the runs alone.

`python -m benchmarks.cluster [RUNS [TURNS]]` takes 800 runs in 4 turns by default. Scheduler and
workers are processes on 127.0.0.1 that start once, as on a cluster; the processes of a plain sweep
start with every sweep. Speeds are therefore those of the last nine tenths of the runs, and the time
to the first tenth is separate. The sides take turns, so a busy machine is busy for all of them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.sweep import MARKET, runs_alone, two_alone
from flmarket_sim.experiments import dask_crew
from flmarket_sim.experiments.dask_places import crew_at
from flmarket_sim.experiments.dask_worker import pack_batch
from flmarket_sim.experiments.worker_processes import Crew, Processes
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.sweep.sweep_runs import RunTask, perform_away, run_sweep

NOTHINGS = 1000  # tasks that take no time: what is left is the cost of handing them out


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[str]:
    """The address of a scheduler with so many workers of one thread each."""
    file = folder / f"scheduler-{workers}.json"
    host = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = [
        "scheduler",
        *host,
        "--port",
        "0",
        "--dashboard-address",
        "127.0.0.1:0",
        "--scheduler-file",
        str(file),
    ]
    worker = [
        "worker",
        *host,
        "--nthreads",
        "1",
        "--no-nanny",
        "--scheduler-file",
        str(file),
        "--local-directory",
        str(folder),
    ]
    processes = []
    try:
        for command in (scheduler, *[worker] * workers):
            program = [sys.executable, "-m", f"distributed.cli.dask_{command[0]}", *command[1:]]
            processes.append(
                subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            # the file exists before it is complete
            while not (file.exists() and file.read_text().rstrip().endswith("}")):
                time.sleep(0.05)
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(processes):
            process.kill()  # workers without a scheduler take minutes to end by themselves
            process.wait()


def measured(text: str, out: Path, crew: Crew) -> tuple[float, float, bytes]:
    """Seconds to the first tenth of the runs, seconds of the rest, and the summary."""
    times: list[float] = []
    began = time.perf_counter()
    run_sweep(
        parse_sweep(text),
        out,
        progress=lambda done, total: times.append(time.perf_counter()),
        crew=crew,
    )
    tenth = len(times) // 10
    return times[tenth] - began, times[-1] - times[tenth], (out / "summary.parquet").read_bytes()


def handing_out(crew: Crew) -> float:
    """Seconds per empty task, after the processes have started."""
    times = [time.perf_counter() for _ in crew.perform(abs, range(NOTHINGS))]
    return (times[-1] - times[NOTHINGS // 10]) / (NOTHINGS - NOTHINGS // 10)


def one_by_one(crew: Crew) -> float:
    """Seconds per empty task without batches: the cost of Dask."""
    before, dask_crew.MOST_IN_A_BATCH = dask_crew.MOST_IN_A_BATCH, 1
    try:
        return handing_out(crew)
    finally:
        dask_crew.MOST_IN_A_BATCH = before


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 800
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    seeds = max(1, runs // (20 * turns))
    folder = Path(tempfile.mkdtemp())
    with dask(folder, 1) as single, dask(folder, 2) as pair:
        crews: dict[str, Crew] = {
            "1": Processes(1),
            "2": Processes(2),
            "dask 1": crew_at(single),
            "dask 2": crew_at(pair),
        }
        while any(count_workers(address) < wanted for address, wanted in ((single, 1), (pair, 2))):
            time.sleep(0.2)
        for side in ("dask 1", "dask 2"):
            run_sweep(
                parse_sweep("seed = 10000" + MARKET.format(seeds=1)),
                folder / f"warm {side}",
                crew=crews[side],
            )
        spent = {side: [0.0, 0.0] for side in crews}
        alone = {"1": 0.0, "2": 0.0}
        for turn in range(turns):
            text = f"seed = {turn * seeds}" + MARKET.format(seeds=seeds)
            alone["1"] += runs_alone(text)
            alone["2"] += two_alone(text)
            wrote = set()
            for side, crew in crews.items():
                first, rest, summary = measured(text, folder / f"{turn} {side}", crew)
                spent[side][0] += first
                spent[side][1] += rest
                wrote.add(summary)
            assert len(wrote) == 1, "processes and Dask workers must give the same bytes"
        empty = {
            "processes": handing_out(Processes(1)),
            "dask": handing_out(crews["dask 1"]),
            "single": one_by_one(crews["dask 1"]),
        }
    shutil.rmtree(folder, ignore_errors=True)
    count = turns * seeds * 20
    rest_runs = turns * (seeds * 20 - seeds * 20 // 10)
    each: dict[str, Any] = {side: rest / rest_runs * 1000 for side, (_, rest) in spent.items()}
    task = RunTask(
        "0" * 64,
        "0" * 24,
        next(run.scenario for run in parse_sweep(MARKET.format(seeds=1)).runs if run.scenario),
        None,
    )
    few, many = (
        len(pack_batch(perform_away, [task] * 1)),
        len(pack_batch(perform_away, _different(8))),
    )

    def row(label: str, single: str, pair: str) -> str:
        return (
            f"| {label} | {each[single]:.1f} ms | {each[pair]:.1f} ms "
            f"| {each[single] / each[pair]:.2f} | "
            f"{spent[single][0] / turns:.1f} s, {spent[pair][0] / turns:.1f} s |"
        )

    print(
        f"""## A sweep of {count:,} runs (100 rounds on digits, 10 bidders) on Dask workers, \
in {turns} turns

| what | a run, one worker | a run, two workers | ratio | to the first tenth |
|---|---|---|---|---|
| the runs alone, in processes that know nothing of each other: what the machine gives \
| {alone["1"] / count * 1000:.1f} ms | \
{alone["2"] / count * 1000:.1f} ms | {alone["1"] / alone["2"]:.2f} | |
{row("`flmarket sweep --workers N`", "1", "2")}
{row("`flmarket sweep --cluster ADDRESS`, workers of one thread", "dask 1", "dask 2")}

Dask beyond `--workers`: {each["dask 1"] - each["1"]:+.1f} ms a run with one worker, \
{each["dask 2"] - each["2"]:+.1f} ms with two.
A task that takes no time: {empty["processes"] * 1e3:.2f} ms in a process, \
{empty["dask"] * 1e3:.2f} ms on a Dask worker with \
short tasks put together, {empty["single"] * 1e3:.2f} ms ({1 / empty["single"]:.0f} a second) \
one by one.
A run is {few:,} bytes on its way to a worker alone, {many / 8:,.0f} among eight. \
All sides write the same bytes."""
    )


def count_workers(address: str) -> int:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return len(client.nthreads())


def _different(count: int) -> list[RunTask]:
    scenarios = [
        run.scenario
        for run in parse_sweep(MARKET.format(seeds=count)).runs
        if run.scenario is not None
    ]
    return [RunTask(scenario.digest(), "0" * 24, scenario, None) for scenario in scenarios[:count]]


if __name__ == "__main__":
    main()
