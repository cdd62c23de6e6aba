"""Bytes per event on disk, at a million events with different delays and compute times."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def main() -> None:
    print("## Bytes an event on disk\n\n| market | events | bytes an event |\n|---|---|---|")
    folder = Path(tempfile.mkdtemp())
    for name, delay in (
        ("constant delays", {"name": "constant"}),
        ("lognormal delays", {"name": "lognormal", "median": 0.3}),
    ):
        table = {
            "rounds": 1500,
            "data": {"name": "synthetic", "records": 200_000},
            "owners": {"count": 10_000},
            "market": {"bidders": 100, "delay": delay},
            "model": {"name": "none"},
        }
        run = fm.run(build_scenario(table), folder / name)
        events = run.info["log"]["events"]
        print(
            f"| 10,000 owners, 100 bidders, 1,500 rounds, {name} | {events:,} "
            f"| {size(run.path / 'events') / events:.1f} |",
            flush=True,
        )
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
