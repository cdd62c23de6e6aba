"""Python's garbage collector in a process that does many runs.

A market is a circle of objects (the buyer knows the clock, and the clock knows the buyer), so only
the collector can free it. During a run it works less often, because a market makes many objects
and few circles. Before a run it frees the runs before, so a process does not grow with their
number.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

SHARE = 0.02  # the largest part of a process' time that goes into collections of everything
RARELY = (100_000, 20, 20)
YOUNGER, ALL = 1, 2  # generations of the collector
_due = math.inf  # when everything is collected again; before the first run there is nothing to free


@contextmanager
def few_collections() -> Iterator[None]:
    """Frees what former runs left, and lets the collector work less often in the block."""
    global _due
    _collect()
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        _due = time.monotonic() if _due == math.inf else _due


def _collect() -> None:
    """Collects the younger objects, which is cheap, and from time to time the old ones, too."""
    global _due
    began = time.monotonic()
    if began < _due:
        gc.collect(YOUNGER)
        return
    gc.collect(ALL)
    ended = time.monotonic()
    _due = ended + (ended - began) / SHARE
