"""The cost of journal and checkpoints: the same runs with both (the default) and with neither."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import flmarket_sim as fm
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint
from flmarket_sim.scenario.scenario_file import build_scenario

TURNS = 3
MARKETS = {
    "10,000 owners, 1,000 bidders, no model": (
        {
            "rounds": 200,
            "data": {"name": "synthetic", "records": 200_000},
            "owners": {"count": 10_000},
            "market": {"bidders": 1000},
            "model": {"name": "none"},
        }
    ),
    "1,000 owners, 10 bidders, logistic regression of 1,220 parameters": (
        {
            "rounds": 3000,
            "data": {"name": "synthetic", "records": 50_000, "features": 121, "classes": 10},
            "owners": {"count": 1000},
            "model": {"name": "logistic", "evaluate_every": 100},
        }
    ),
}


def processor_seconds(scenario, folder: Path) -> float:
    """Of this process: others on the machine do not count, nor does waiting for the disk."""
    began = time.process_time()
    fm.run(scenario, folder)
    shutil.rmtree(folder)
    return time.process_time() - began


def main() -> None:
    default = (parquet_log.JOURNAL_SECONDS, checkpoint.SECONDS)
    print(
        "## What crash safety costs\n\n"
        "Processor seconds, best of turns: a journal every second and a checkpoint every five, "
        "against neither.\n\n"
        "| market | with | without | ratio |\n|---|---|---|---|",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        for market, table in MARKETS.items():
            scenario, best = (
                build_scenario(table),
                {default: float("inf"), (1e9, 1e9): float("inf")},
            )
            for _ in range(TURNS):
                for setting in best:
                    parquet_log.JOURNAL_SECONDS, checkpoint.SECONDS = setting
                    best[setting] = min(
                        best[setting], processor_seconds(scenario, Path(name) / "run")
                    )
            with_both, with_neither = best.values()
            print(
                f"| {market} | {with_both:.2f} s | {with_neither:.2f} s "
                f"| {with_both / with_neither:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
