"""A sweep of paper-size runs on digits: one process against two, and what a sweep costs beyond its runs.

`python -m benchmarks.sweep [RUNS]`; 1,000 by default. The run itself is measured in this process, on the same scenarios.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.study.runs import load_data
from flmarket_sim.study.sweep import run_sweep
from flmarket_sim.study.sweep_file import parse_sweep

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


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seeds = max(1, runs // (20 * TURNS))
    alone = one = two = 0.0
    files: set[bytes] = set()
    folder = Path(tempfile.mkdtemp())
    for turn in range(TURNS):
        text = f"seed = {turn * seeds}" + MARKET.format(seeds=seeds)
        scenarios = [run.scenario for run in parse_sweep(text).runs if run.scenario is not None]
        data = load_data(scenarios[0])
        began = time.perf_counter()
        for scenario in scenarios:
            rounds_only(scenario, data)
        alone += time.perf_counter() - began
        for workers in (1, 2):
            began = time.perf_counter()
            run_sweep(parse_sweep(text), folder / f"{turn}-{workers}", workers)
            spent = time.perf_counter() - began
            one, two = (one + spent, two) if workers == 1 else (one, two + spent)
        files |= {(folder / f"{turn}-{workers}" / "summary.parquet").read_bytes() for workers in (1, 2)}
    shutil.rmtree(folder)
    assert len(files) == TURNS, "one and two processes must give the same bytes"
    count = TURNS * seeds * 20
    print(
        f"""## A sweep of {count:,} runs (100 rounds on digits, 10 bidders), summaries only, in {TURNS} parts

| what | time | a run | ratio |
|---|---|---|---|
| the runs alone, one after the other in one process | {alone:.1f} s | {alone / count * 1000:.1f} ms | |
| `flmarket sweep`, one process: plan, start, runs, parts, summary | {one:.1f} s | {one / count * 1000:.1f} ms | 1 |
| two processes | {two:.1f} s | {two / count * 1000:.1f} ms | {one / two:.2f} times faster |

Overhead beyond the runs: {(one - alone) / count * 1000:.1f} ms a run, the start of the processes included. The summaries have the same bytes."""
    )


if __name__ == "__main__":
    main()
