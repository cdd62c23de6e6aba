"""The paper's market on NSL-KDD, full event log, against the authors' way of doing it."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import torch

import flmarket_sim as fm
from benchmarks import authors_way
from benchmarks.timing import best_of
from flmarket_sim.learning.nsl_kdd import NslKdd
from flmarket_sim.randomness import Streams

ROOT = Path(__file__).parents[1]


def main() -> None:
    torch.set_num_threads(2)
    scenario = fm.load_scenario(ROOT / "scenarios/paper/iid.toml")
    NslKdd().load(Streams(0))
    began = time.perf_counter()
    data = NslKdd().load(Streams(0))
    second_load = time.perf_counter() - began
    folder = Path(tempfile.mkdtemp())

    def ours() -> None:
        shutil.rmtree(folder / "run", ignore_errors=True)
        fm.run(scenario, folder / "run", data=data)

    sides = (
        ours,
        lambda: authors_way.run(scenario, data, loader=False),
        lambda: authors_way.run(scenario, data),
    )
    package, kinder, authors = best_of(3, *sides)
    events = fm.read_run(folder / "run")["log"]["events"]
    shutil.rmtree(folder)
    print(
        f"""## 100 rounds on NSL-KDD, 1000 owners, 10 bidders

| what | time | ratio |
|---|---|---|
| `flmarket run`: {events:,} events logged, evaluation every 10 rounds | {package:.2f} s | 1 |
| the authors' way (benchmarks/authors_way.py): evaluation every round through a DataLoader, \
no log | {authors:.2f} s | {authors / package:.1f} |
| the same, but the test set evaluated as one tensor | {kinder:.2f} s | {kinder / package:.1f} |

Imports and loading apart. Loading NSL-KDD a second time, from the feature cache: \
{second_load:.2f} s."""
    )


if __name__ == "__main__":
    main()
