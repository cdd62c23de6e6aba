"""`load`: the tests beside busy loops, several times in a row. None may depend on the pace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .outcome import Failure, Outcome, Progress

LOOP = "while True: pass"
SLOWEST = 5


@contextmanager
def busy(loops: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that do nothing, as fast as they can."""
    started = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(loops)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def attack(paths: Sequence[str], loops: int, times: int, progress: Progress) -> Outcome:
    """Runs pytest on the paths so many times, in this environment, with one thread for BLAS."""
    outcome, began = Outcome("load"), time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", f"--durations={SLOWEST}", *paths]
    again = f"python -m benchmarks.attack load --loops {loops} --times 1 {' '.join(paths)}"
    for turn in range(times):
        start = time.monotonic()
        with busy(loops):
            done = subprocess.run(
                command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
            )
        outcome.trials += 1
        last = (done.stdout.strip().splitlines() or [""])[-1]
        seconds = round(time.monotonic() - start)
        outcome.rows.append({"turn": turn + 1, "seconds": seconds, "pytest says": last})
        for line in done.stdout.splitlines() if done.returncode else ():
            if line.startswith(("FAILED", "ERROR")):
                what = line.partition(" - ")[2] or last
                outcome.failures.append(Failure(turn, line.partition(" - ")[0], what, again))
        if done.returncode and not outcome.failures:
            what = (done.stdout + done.stderr)[-500:]
            outcome.failures.append(
                Failure(turn, f"pytest ended with {done.returncode}", what, again)
            )
        progress(turn + 1, times, len(outcome.failures))
    outcome.seconds = time.monotonic() - began
    return outcome
