"""What `[log]` costs: records in owners.parquet, and models in files."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from flmarket_sim.market.run_folder import owners_table
from flmarket_sim.owners.population import create_population
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage.atomic_files import write_parquet

MILLION = {
    "data": {"name": "synthetic", "records": 12_000_000, "features": 1, "classes": 4},
    "owners": {"count": 1_000_000, "partition": {"name": "iid", "sigma": 1.0, "minimum": 5}},
}
LEARNING = {
    "rounds": 300,
    "data": {"name": "synthetic", "records": 50_000, "features": 121, "classes": 10},
    "owners": {"count": 1000},
}


def records(folder: Path) -> None:
    scenario = build_scenario(MILLION)
    data = fm.load_data(scenario)
    began = time.perf_counter()
    people = create_population(scenario, Streams(scenario.seed), data)
    drawn = time.perf_counter() - began
    print(
        "## Records in owners.parquet\n\n"
        f"1,000,000 owners of {len(data.train_y):,} records; drawing them takes {drawn:.1f} s.\n\n"
        "| records | write | read | size |\n|---|---|---|---|"
    )
    for wanted in (False, True):
        path = folder / "owners.parquet"
        began = time.perf_counter()
        write_parquet(path, owners_table(people, (None, None), wanted))
        written = time.perf_counter()
        (folder / "run.json").write_text("{}")
        fm.read_owners(folder)
        seconds = time.perf_counter() - written
        size = path.stat().st_size / 1e6
        print(f"| {wanted} | {written - began:.1f} s | {seconds:.1f} s | {size:.0f} MB |")


def models(folder: Path) -> None:
    print(
        "\n## Kept models\n\n"
        "Logistic regression of 1,220 parameters, 300 rounds, evaluated in each.\n\n"
        "| models | wall time | processor time | files | size |\n|---|---|---|---|---|"
    )
    for policy in ("never", "every"):
        table: dict[str, Any] = LEARNING | {"log": {"models": policy}}
        began, worked = time.perf_counter(), time.process_time()
        run = fm.run(build_scenario(table), folder / policy)
        wall, worked = time.perf_counter() - began, time.process_time() - worked
        files = [path.stat().st_size for path in run.path.glob("models/*/*")]
        size = sum(files) / 1e6
        print(f"| {policy} | {wall:.2f} s | {worked:.2f} s | {len(files)} | {size:.1f} MB |")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        records(folder)
        models(folder)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
