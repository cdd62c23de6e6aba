"""A sweep of paper-size runs on digits: one process against two, and the cost beyond the runs.

`python -m benchmarks.sweep [RUNS [TURNS]]` takes 1,000 runs in 4 turns by default, in about ten
minutes. The runs alone are measured in this process, on the same scenarios.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from flmarket_sim.experiments.market_runs import load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep

MARKET = """
rounds = 100
[model]
evaluate_every = 10
[sweep]
seeds = {seeds}
[sweep.grid]
"auction.name" = ["all-in", "all-in-critical", "proportional-share", "fair-query", "pay-as-bid"]
"budget.factor" = [0.2, 0.5, 1.0, 2.0]
"""
TURNS = 4  # the sides take turns: a machine that is busy for a while is busy for all of them


def runs_alone(text: str, first: int = 0, step: int = 1) -> float:
    """Seconds of every `step`-th run in this process, without loading."""
    scenarios = [run.scenario for run in parse_sweep(text).runs if run.scenario is not None][
        first::step
    ]
    data = load_data(scenarios[0])
    began = time.perf_counter()
    for scenario in scenarios:
        rounds_only(scenario, data)
    return time.perf_counter() - began


def two_alone(text: str) -> float:
    """Seconds of the runs in two independent processes: the limit of the machine."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        return max(pool.map(runs_alone, (text, text), (0, 1), (2, 2)))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else TURNS
    seeds = max(1, runs // (20 * turns))
    folder = Path(tempfile.mkdtemp())
    seconds = dict.fromkeys(("alone", "two alone", "one", "two"), 0.0)
    for turn in range(turns):
        text = f"seed = {turn * seeds}" + MARKET.format(seeds=seeds)
        seconds["alone"] += runs_alone(text)
        seconds["two alone"] += two_alone(text)
        for workers, side in ((1, "one"), (2, "two")):
            began = time.perf_counter()
            run_sweep(parse_sweep(text), folder / f"{turn} {side}", workers)
            seconds[side] += time.perf_counter() - began
        same = {
            (folder / f"{turn} {side}" / "summary.parquet").read_bytes() for side in ("one", "two")
        }
        assert len(same) == 1, "one and two processes must give the same bytes"
    shutil.rmtree(folder)
    count = turns * seeds * 20
    each = {side: spent / count * 1000 for side, spent in seconds.items()}
    gives = seconds["alone"] / seconds["two alone"]
    print(
        f"""## A sweep of {count:,} runs (100 rounds on digits, 10 bidders), summaries only, \
in {turns} turns

| what | time | a run | speed-up by the second process |
|---|---|---|---|
| the runs alone, one process | {seconds["alone"]:.1f} s | {each["alone"]:.1f} ms | |
| the runs alone in two processes: what the machine gives | {seconds["two alone"]:.1f} s \
| {each["two alone"]:.1f} ms | {gives:.2f} |
| `flmarket sweep`, one process: plan, start, runs, results, summary | {seconds["one"]:.1f} s \
| {each["one"]:.1f} ms | |
| `flmarket sweep`, two processes | {seconds["two"]:.1f} s | {each["two"]:.1f} ms \
| {seconds["one"] / seconds["two"]:.2f} |

Overhead beyond the runs: {each["one"] - each["alone"]:.1f} ms a run with {count // turns} runs \
a turn, the start of the process included.
One and two processes write the same bytes."""
    )


if __name__ == "__main__":
    main()
