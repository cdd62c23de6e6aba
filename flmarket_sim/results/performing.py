"""How a call does its tasks: in this process or in several, with a progress bar if it takes long.

The command line does the tasks of the same calls in its own way (cli/crew.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flmarket_sim.errors import InputError, one_line
from flmarket_sim.experiments.engine import Progress, results_of
from flmarket_sim.experiments.worker_processes import Crew, local_crew

# name of the work, its tasks, the function that does one, what a task is called: the results
Perform = Callable[[str, Sequence[Any], Callable[[Any], Any], str], list[Any]]
PATIENCE = 2.0  # seconds before a bar appears


def in_python(workers: int, progress: Progress | None, travel: bool = True) -> Perform:
    """Does tasks in so many processes, and keeps the results in memory.

    Tasks that cannot `travel` are done in this process.
    """
    crew = crew_of(workers if travel else 1)

    def perform(
        name: str, tasks: Sequence[Any], measure: Callable[[Any], Any], step: str
    ) -> list[Any]:
        with shown_progress(name, step, progress) as report:
            return results_of(tasks, measure, crew=crew, progress=report)

    return perform


def crew_of(workers: int) -> Crew:
    """So many processes of this machine; one is this process itself."""
    if not isinstance(workers, int) or workers < 1:
        raise InputError(f"workers must be a whole number of at least 1, got {workers!r}")
    return local_crew(workers)


@contextmanager
def shown_progress(name: str, step: str, progress: Progress | None = None) -> Iterator[Progress]:
    """The function to call with (done, total): the caller's own, or one that moves a bar.

    The bar appears in a terminal when the work has taken two seconds, and goes when it is done. The
    environment variable FLMARKET_PROGRESS=0 turns it off.
    """
    if progress is not None:
        yield progress
    elif not sys.stderr.isatty() or os.environ.get("FLMARKET_PROGRESS") == "0":
        yield lambda done, total: None
    else:
        with _late_bar(f"{name}: {step}") as report:
            yield report


@contextmanager
def _late_bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    began = time.monotonic()
    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(escape(one_line(what)), total=None)

    def report(done: int, total: int) -> None:
        if not bar.live.is_started and time.monotonic() - began > PATIENCE:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()
