"""Measurements on noisy machines: the sides take turns, the best time counts, ratios decide."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path


def best_of(
    repeats: int, *sides: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The shortest time of each side, in seconds, with the sides taking turns."""
    best = [float("inf")] * len(sides)
    for _ in range(repeats):
        for place, side in enumerate(sides):
            began = clock()
            side()
            best[place] = min(best[place], clock() - began)
    return best


def times_of(
    repeats: int, *sides: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """The times of each side, in seconds, with the sides taking turns."""
    times = [best_of(1, *sides, clock=clock) for _ in range(repeats)]
    return [list(column) for column in zip(*times, strict=True)]


def peak_memory() -> float:
    """Largest resident memory of this process so far, in bytes.

    On Linux, getrusage starts from the peak of the parent process; /proc/self/status does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0
