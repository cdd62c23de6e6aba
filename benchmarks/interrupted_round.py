"""How soon a round of 100,000 offers in turn stops after Ctrl-C, and what is left of the run.

`python -m benchmarks.interrupted_round [OWNERS]` starts real runs and interrupts them when so many
offers were made. One round of such a market takes minutes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flmarket_sim as fm

OFFERS = (0, 5_000)  # offers before the signal
MARKET = """
rounds = 3
[data]
name = "synthetic"
records = {records}
[owners]
count = {owners}
[market]
bidders = {owners}
[auction]
name = "seq-price"
[model]
name = "none"
"""
SIGNALLED = """
import os, signal, sys, time
from flmarket_sim.cli import main
from flmarket_sim.market import sale_in_turn
offers, last, log_offer = 0, int(sys.argv.pop()), sale_in_turn._log_offer
def log_and_signal(*arguments):
    global offers
    if offers == last:
        print(time.time(), time.process_time(), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
    offers += 1
    log_offer(*arguments)
sale_in_turn._log_offer = log_and_signal
main()
"""


def seconds_to_stop(owners: int, offers: int, folder: Path) -> tuple[float, float]:
    """Seconds from the signal to the end of the process: on the clock, and of work.

    On a machine that does other things, too, the first depends on these.
    """
    before = _worked()
    (folder / "m.toml").write_text(MARKET.format(owners=owners, records=20 * owners))
    command = [sys.executable, "-c", SIGNALLED, "run", "m.toml", "--out", f"run {offers}"]
    ended = subprocess.run(
        [*command, str(offers)],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
    )
    signalled, worked = map(float, ended.stdout.split()[:2])
    seconds = time.time() - signalled, _worked() - before - worked
    assert ended.returncode == 130 and "flmarket resume" in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    assert fm.read_run(folder / f"run {offers}")["outcome"] == "interrupted"
    fm.read_events(folder / f"run {offers}", "offer")
    return seconds


def _worked() -> float:
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    owners = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"## Ctrl-C in a round of {owners:,} offers in turn\n")
    print("| offers before the signal | seconds to the end of the process | of work |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for offers in OFFERS:
            passed, worked = seconds_to_stop(owners, offers, Path(folder))
            print(f"| {offers:,} | {passed:.1f} | {worked:.1f} |", flush=True)


if __name__ == "__main__":
    main()
