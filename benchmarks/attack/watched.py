"""Trials in processes that are watched: a trial that hangs or kills its process is lost alone."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

SECONDS = 300.0  # of one trial; a busy machine is slow, and a hang lasts for ever
STARTING = 900.0
MEMORY = 4 * 2**30  # bytes beyond what a process has when it is ready

Trial = Callable[[int], Any]


@dataclass(frozen=True)
class Lost:
    """A trial without an answer."""

    why: str


def perform(
    make: Callable[[], Trial], indices: Iterable[int], workers: int, seconds: float = SECONDS
) -> Iterator[tuple[int, Any]]:
    """The answers of all trials, in any order. `make` is called once in every process.

    With no workers, the trials are done in this process, and nobody watches.
    """
    if workers == 0:
        trial = make()
        yield from ((index, trial(index)) for index in indices)
        return
    waiting = list(reversed(list(indices)))
    crew = [_Worker(make, seconds) for _ in range(min(workers, len(waiting)))]
    try:
        while crew:
            for worker in crew:
                if worker.is_ready() and waiting:
                    worker.begin(waiting.pop())
            wait([worker.pipe for worker in crew], timeout=1.0)
            for place, worker in enumerate(crew):
                found = worker.answer()
                if found is not None and worker.index is not None:
                    yield worker.index, found
                    worker.index = None
                if isinstance(found, Lost):
                    worker.end()
                    crew[place] = _Worker(make, seconds)
            crew = [worker for worker in crew if waiting or not worker.is_done()]
    finally:
        for worker in crew:
            worker.end()


class _Worker:
    """One process, and the trial that it is doing."""

    def __init__(self, make: Callable[[], Trial], seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(make, theirs))
        self._process.start()
        theirs.close()
        self.index: int | None = None
        self._seconds, self._made = seconds, False
        self._deadline = time.monotonic() + STARTING

    def is_ready(self) -> bool:
        return self._made and self.index is None

    def is_done(self) -> bool:
        if self.is_ready():
            self.end()
        return self.is_ready()

    def begin(self, index: int) -> None:
        self.index, self._deadline = index, time.monotonic() + self._seconds
        self.pipe.send(index)

    def answer(self) -> Any:
        """The answer if there is one; None while it is not there."""
        try:
            if self.pipe.poll():
                return self._received(self.pipe.recv())
        except (EOFError, OSError):
            self._process.join()
            return self._lost(f"its process ended with exit code {self._process.exitcode}")
        busy = self.index is not None or not self._made
        if busy and time.monotonic() > self._deadline:
            return self._lost(f"it had no answer after {self._seconds:g} seconds")
        return None

    def end(self) -> None:
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self.pipe.close()

    def _received(self, said: Any) -> Any:
        if self._made:
            return said
        if said != "ready":
            raise RuntimeError(f"the process of an attack could not start: {said}")
        self._made = True
        return None

    def _lost(self, why: str) -> Lost:
        if not self._made:
            raise RuntimeError(f"the process of an attack could not start: {why}")
        return Lost(why)


def _work(make: Callable[[], Trial], pipe: Any) -> None:
    try:
        trial = make()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
        return
    _limit_memory()
    pipe.send("ready")
    while True:
        try:
            index = pipe.recv()
        except EOFError:
            return
        pipe.send(trial(index))


def _limit_memory() -> None:
    """Where the system can: a reader that wants too much then gets a MemoryError."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return
    import resource

    now = int(pages.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))
