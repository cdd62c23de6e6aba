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


def ratios(
    repeats: int,
    side: Callable[[], object],
    other: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """The time of a side over that of another, once for each turn that the two take, ascending."""
    found = []
    for _ in range(repeats):
        times = best_of(1, side, other, clock=clock)
        found.append(times[0] / times[1])
    return sorted(found)


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
