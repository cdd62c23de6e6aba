"""The memory of a sweep's worker process by the number of runs that it has done.

`python -m benchmarks.worker_memory [RUNS]` takes 10,000 one-round runs of a small market and a
twentieth of it of a market with 10,000 owners, in about ten minutes. A worker that keeps anything
of a finished run grows in a straight line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.many_events import resident
from flmarket_sim.experiments.engine import Guarded
from flmarket_sim.experiments.worker_processes import WorkerProcess
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.sweep.sweep_runs import RunTask, perform

Memory = dict[int, float]  # bytes by number of runs
WARM = 100  # runs before the first measurement: libraries are loaded, and memory pools are filled
STEPS = 10
MARKETS: dict[str, tuple[int, dict[str, Any]]] = {  # name: one of how many runs, tables
    "100 owners": (1, {"data": {"name": "synthetic", "records": 2_000}}),
    "10,000 owners": (
        20,
        {
            "data": {"name": "synthetic", "records": 200_000},
            "owners": {"count": 10_000},
            "market": {"bidders": 1_000},
        },
    ),
}


def done_and_resident(task: RunTask) -> float:
    """Does a run, and returns the bytes of this process."""
    result = Guarded(perform)(task)
    if not isinstance(result, dict):
        raise RuntimeError(result)
    return resident()


def memory_by_runs(
    tables: dict[str, Any], runs: int, steps: int = STEPS, warm: int = WARM
) -> Memory:
    """What one worker holds after `warm` runs, and after each further `runs / steps` of them."""
    return dict(_measured(tables, range(warm, warm + runs + 1, max(1, runs // steps))))


def _measured(tables: dict[str, Any], moments: range) -> Iterator[tuple[int, float]]:
    scenario = build_scenario({"rounds": 1, "model": {"name": "none"}} | tables)
    worker: WorkerProcess[RunTask] = WorkerProcess(done_and_resident)
    try:
        worker.pipe.recv()  # it is ready
        for done in range(1, moments[-1] + 1):
            one = scenario.model_copy(update={"seed": done})
            worker.give(RunTask(str(done), str(done), one, None))
            held = worker.pipe.recv()
            if done in moments:
                yield done, held
    finally:
        worker.end()


def growth(memory: Memory) -> float:
    """The largest memory over the first, less one."""
    first, *_ = memory.values()
    return max(memory.values()) / first - 1.0


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print("## Memory of a sweep's worker by the number of one-round runs\n")
    print("| market | runs | MB | over the first |\n|---|---|---|---|")
    for name, (part, tables) in MARKETS.items():
        memory = memory_by_runs(tables, runs // part)
        first, *_ = memory.values()
        for done, held in memory.items():
            print(f"| {name} | {done:,} | {held / 1e6:.1f} | {held / first - 1:+.1%} |", flush=True)
        print(f"| {name}: largest growth | | | {growth(memory):+.1%} |", flush=True)


if __name__ == "__main__":
    main()
