"""Measurements on noisy machines: the sides take turns, the best time counts, ratios decide."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path


def times_of(
    repeats: int, *sides: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """The times of each side, in seconds, with the sides taking turns."""
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(repeats):
        for own, side in zip(times, sides, strict=True):
            began = clock()
            side()
            own.append(clock() - began)
    return times


def best_of(
    repeats: int, *sides: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The shortest time of each side, in seconds, with the sides taking turns."""
    return [min(own) for own in times_of(repeats, *sides, clock=clock)]


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
