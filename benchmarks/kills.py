"""Kills runs at random moments, resumes them, and compares their bytes with undisturbed runs.

`python -m benchmarks.kills [KILLS] [SEED]` kills real processes with SIGKILL. Journal, checkpoints
and parts are written hundreds of times as often as in normal runs, so that kills hit them. After
every kill the log must be a beginning of the undisturbed log, up to the end of a round.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from flmarket_sim.eventlog import KINDS
from flmarket_sim.storage.sealed_files import SEAL

KILLS_OF_ONE_RUN = 3
EVENTS_PER_PART = 3000
DATA = {"data": {"name": "synthetic", "records": 20_000}, "owners": {"count": 300}}
UNRELIABLE = {
    "delay": {"name": "lognormal", "median": 1.0, "sigma": 1.0},
    "bidders": 12,
    "bid_deadline": 4.0,
    "decision_deadline": 4.0,
    "gradient_deadline": 6.0,
}
MARKETS: dict[str, dict[str, Any]] = {
    "one buyer": DATA | {"rounds": 250, "model": {"name": "logistic", "evaluate_every": 5}},
    "several buyers": DATA
    | {"rounds": 80, "buyers": [{"name": "anna"}, {"name": "bert", "auction": {"name": "all-in"}}]},
    "stragglers": DATA
    | {
        "rounds": 150,
        "market": UNRELIABLE,
        "owners": {"count": 300, "dropout": 0.1, "availability": 0.9, "lifetime_budget": 20.0},
    },
    "slow money": DATA
    | {
        "rounds": 200,
        "market": {"bidders": 4, "delay": {"name": "uniform", "low": 0.0, "high": 5.0}},
    },
    "learners": DATA
    | {
        "rounds": 150,
        "model": {"name": "none"},
        "owners": {
            "count": 300,
            "behaviours": [{"name": "bandit", "share": 0.4}, {"name": "exp3", "share": 0.4}],
        },
    },
    "in turn": DATA | {"rounds": 60, "auction": {"name": "seq-price"}},
    "kept models": DATA
    | {
        "rounds": 60,
        "model": {"name": "logistic", "evaluate_every": 4},
        "log": {"models": "evaluated"},
    },
    "local training": DATA
    | {
        "rounds": 150,
        "learning": {"update": "local", "steps": 3, "batch": 20},
        "model": {"name": "logistic", "optimizer": "adam", "schedule": "cosine", "averaging": 0.5},
    },
    "no model": DATA | {"rounds": 300, "model": {"name": "none"}, "market": {"bidders": 30}},
}
CHILD = """
import json, os, sys
from pathlib import Path
import flmarket_sim as fm
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint
from flmarket_sim.market import simulation
from flmarket_sim.scenario.scenario_file import build_scenario
run, resume = fm.run, fm.resume  # imported on first use: not while the clock is running
parquet_log.EVENTS_PER_PART, parquet_log.JOURNAL_SECONDS = int(sys.argv[3]), 0.01
checkpoint.SECONDS, checkpoint.SHARE = 0.03, 1.0
out, what = Path(sys.argv[1]), sys.argv[2]
last = int(sys.argv[4])  # after this round of a buyer the process kills itself; 0 for never
progress = lambda done, total: last and done >= last and os.kill(os.getpid(), 9)
print("begin", flush=True)
if what == "resume":
    resume(out, progress)
else:
    run(build_scenario(json.loads(what)), out, progress)
"""


def started(out: Path, what: str, last: int = 0) -> subprocess.Popen[str]:
    """A process that runs or resumes and has just begun. It kills itself after round `last`."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(out), what, str(EVENTS_PER_PART), str(last)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def completed(out: Path, what: str) -> float:
    """Runs or resumes to the end; returns the seconds."""
    process = started(out, what)
    began = time.monotonic()
    _, errors = process.communicate()
    if process.returncode:
        raise AssertionError(f"{what[:20]} in {out} failed:\n{errors}")
    return time.monotonic() - began


def killed(out: Path, what: str, seconds: float) -> bool:
    """Runs, kills after `seconds`, and returns whether the kill came before the end."""
    process = started(out, what)
    try:
        _, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
    if process.returncode not in (0, -9):
        raise AssertionError(f"{what[:20]} in {out} failed with {process.returncode}:\n{errors}")
    return process.returncode != 0


def killed_after(out: Path, what: str, last: int) -> bool:
    """Runs or resumes until the process kills itself after a round; whether it did."""
    process = started(out, what, last)
    _, errors = process.communicate()
    if process.returncode not in (0, -9):
        raise AssertionError(f"{what[:20]} in {out} failed with {process.returncode}:\n{errors}")
    return process.returncode != 0


def fingerprint(run: Path) -> dict[str, str]:
    """A hash of every file, of run.json without its wall time."""
    hashes = {}
    for path in sorted(run.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.name == "run.json":
                content = json.dumps(
                    {
                        k: v
                        for k, v in json.loads(content).items()
                        if k not in ("wall_seconds", SEAL)
                    }
                ).encode()
            hashes[str(path.relative_to(run))] = hashlib.sha256(content).hexdigest()
    return hashes


def check_readable(run: Path, whole: Path) -> int:
    """Checks that a killed log is a beginning of the whole log; returns its last event.

    It must end with a complete round.
    """
    if not (run / "run.json").exists():
        return 0
    tables = {kind: fm.read_events(run, kind) for kind in KINDS}
    seqs = sorted(seq for table in tables.values() for seq in table.column("seq").to_pylist())
    assert seqs == list(range(1, len(seqs) + 1)), f"events are missing or doubled in {run}"
    ends = tables["round"].column("seq").to_pylist()
    all_events = fm.read_run(whole)["log"]["events"]  # the last money moves after the last round
    assert len(seqs) in (0, all_events) or ends[-1] == seqs[-1], (
        f"the log of {run} ends in the middle of a round"
    )
    for kind, table in tables.items():
        undisturbed = fm.read_events(whole, kind)
        assert table.to_pylist() == undisturbed.slice(0, len(table)).to_pylist() or _same(
            table, undisturbed
        ), f"{kind} differs in {run}"
    assert fm.sql(run, "select count(*) as n from bid").to_pylist()[0]["n"] == len(tables["bid"])
    return len(seqs)


def _same(table: Any, undisturbed: Any) -> bool:
    """Equality for which nan equals nan."""
    return repr(table.to_pylist()) == repr(undisturbed.slice(0, len(table)).to_pylist())


def kill_and_compare(
    name: str, folder: Path, lot: random.Random, whole: Path, seconds: float, kills: int
) -> list[int]:
    """Kills a run and its resumes up to `kills` times, then lets it end.

    Returns the last readable event after each kill.
    """
    out, seen = folder / f"run {lot.random()}", []
    what = json.dumps(MARKETS[name])
    for _ in range(kills):
        came_in_time = killed(out, what, lot.uniform(0.0, seconds))
        if (out / "run.json").exists():
            what = "resume"
        if not came_in_time:
            break
        seen.append(check_readable(out, whole))
        assert seen[-1] == max(seen), f"{out} could be read further before"
    completed(out, what)
    assert fingerprint(out) == fingerprint(whole), f"{out} is not {whole}"
    completed(out, "resume")
    assert fingerprint(out) == fingerprint(whole), f"resuming a finished run changed {out}"
    return seen


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    lot = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = {market: folder / market for market in MARKETS}
        seconds = {
            market: completed(path, json.dumps(MARKETS[market])) for market, path in whole.items()
        }
        print(
            "| market | events | runs | kills | kills with something to read |\n"
            "|---|---|---|---|---|",
            flush=True,
        )
        done: dict[str, list[list[int]]] = {market: [] for market in MARKETS}
        while sum(len(seen) for runs in done.values() for seen in runs) < kills:
            for market in MARKETS:
                wanted = min(
                    lot.randint(1, KILLS_OF_ONE_RUN),
                    kills - sum(len(seen) for runs in done.values() for seen in runs),
                )
                if wanted > 0:
                    done[market].append(
                        kill_and_compare(
                            market, folder, lot, whole[market], seconds[market], wanted
                        )
                    )
        for market, runs in done.items():
            seen = [last for run in runs for last in run]
            events = fm.read_run(whole[market])["log"]["events"]
            print(
                f"| {market} | {events:,} | {len(runs)} | {len(seen)} "
                f"| {sum(last > 0 for last in seen)} |"
            )
        total = sum(len(seen) for runs in done.values() for seen in runs)
        print(
            f"\n{total} kills in {sum(map(len, done.values()))} runs; every run ended with the "
            "bytes of an undisturbed one."
        )


if __name__ == "__main__":
    main()
