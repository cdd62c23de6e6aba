"""A million owners: time and memory, with and without learning."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flmarket_sim as fm
from benchmarks.timing import peak_memory
from flmarket_sim.scenario.scenario_file import build_scenario

TABLE = {
    "rounds": 20,
    "data": {"name": "synthetic", "records": 12_000_000, "features": 10, "classes": 4},
    "owners": {"count": 1_000_000, "partition": {"name": "iid", "sigma": 1.0, "minimum": 5}},
    "market": {"bidders": 1000},
}


def run_model(model: str) -> None:
    folder = Path(tempfile.mkdtemp())
    began = time.perf_counter()
    fm.run(build_scenario(TABLE | {"model": {"name": model, "evaluate_every": 5}}), folder / "run")
    print(f"| {model} | {time.perf_counter() - began:.1f} s | {peak_memory() / 1e9:.2f} GB |")
    shutil.rmtree(folder)


def main() -> None:
    print(
        "## 1,000,000 owners, 1,000 bidders a round, 20 rounds\n\n"
        "12 million synthetic records of 10 features; the time includes drawing the population.\n\n"
        "| model | time | peak memory |\n|---|---|---|",
        flush=True,
    )
    for model in ("none", "logistic"):
        subprocess.run([sys.executable, "-m", "benchmarks.population", model], check=True)


if __name__ == "__main__":
    run_model(sys.argv[1]) if len(sys.argv) > 1 else main()
