"""Many tasks in a few processes of their own, each with one thread for BLAS and torch; a process that dies costs one task.

Unlike the pools of the standard library it knows which task a dead process had, and the others do not notice. `Crew` is what
a sweep asks of whoever does its tasks: `Processes` are here, a cluster is in cluster.py.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any, Generic, Protocol, TypeVar

from flmarket_sim.errors import FlmarketError

Task = TypeVar("Task")
Result = TypeVar("Result")
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
READY = "ready"
STARTS_LOST = 5


@dataclass(frozen=True)
class Died:
    """In the place of a result: the process ended before it had one. On a cluster, so did `workers` workers."""

    exit_code: int | None
    workers: int = 0

    def __str__(self) -> str:
        code = self.exit_code
        if self.workers:
            return f"the cluster lost the worker that had this run, and nothing else, {self.workers} time(s) in a row"
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"its process was ended {how} before the run was done"


class Crew(Protocol):
    """Whoever does tasks, somewhere."""

    @property
    def shares_disk(self) -> bool:
        """Do its processes write where this one reads?"""
        ...

    def perform(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Result | Died], None, None]:
        """Each task once, with `function(task)`, in the order in which they are done."""
        ...


@dataclass(frozen=True)
class ThisProcess:
    """A crew of one: this process does one task after the other."""

    shares_disk: bool = True

    def perform(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Result | Died], None, None]:
        for task in tasks:
            yield task, function(task)


@dataclass(frozen=True)
class Processes:
    """A crew on this machine."""

    workers: int
    shares_disk: bool = True

    def perform(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Result | Died], None, None]:
        return in_processes(function, tasks, self.workers)


@dataclass(frozen=True)
class GrowingCrew:
    """This process does the first tasks; processes take over when the work goes on for long.

    A process takes a second or more to start, so small experiments are faster without any.
    """

    workers: int
    patience: float = 2.0  # seconds of work in this process
    shares_disk: bool = True

    def perform(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Result | Died], None, None]:
        began = time.monotonic()
        for done, task in enumerate(tasks):
            if time.monotonic() - began > self.patience and len(tasks) - done > 1:
                yield from in_processes(function, tasks[done:], self.workers)
                return
            yield task, function(task)


def local_crew(workers: int) -> Crew:
    """`workers` processes of this machine; one worker is this process itself."""
    return ThisProcess() if workers == 1 else Processes(workers)


def in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Generator[tuple[Task, Result | Died], None, None]:
    """Each task with `function(task)`, in the order in which they are done. Closing the generator ends all processes.

    `function` must be importable by name and should raise nothing: a process in which it does is one that died.
    """
    waiting, lost = deque(tasks), 0
    crew: list[WorkerProcess[Task]] = []
    try:
        crew += [WorkerProcess(function) for _ in range(min(workers, len(tasks)))]
        while crew:
            for ready in connection.wait([worker.pipe for worker in crew]):
                worker = next(worker for worker in crew if worker.pipe is ready)
                try:
                    told: Any = worker.pipe.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    died = worker.end()
                    if worker.task is None and (died.exit_code or 0) < 0 and lost < STARTS_LOST:
                        lost += 1  # somebody killed it while it was starting: that is no fault of the runs
                        if waiting:
                            crew.append(WorkerProcess(function))
                        continue
                    if worker.task is None:
                        raise FlmarketError(
                            f"a process for runs could not start (exit code {died.exit_code}); a script that starts a "
                            "sweep needs `if __name__ == '__main__':` around what it does"
                        ) from None
                    if waiting:
                        crew.append(WorkerProcess(function))
                    yield worker.task, died
                    continue
                done, worker.task = worker.task, None
                if waiting:
                    worker.give(waiting.popleft())
                else:
                    crew.remove(worker)
                    worker.end()
                if told != READY and done is not None:
                    yield done, told
    finally:
        for worker in crew:
            worker.end()


class WorkerProcess(Generic[Task]):
    """A process and the task that it has."""

    def __init__(self, function: Callable[[Task], Any]) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.task: Task | None = None
        self.process = context.Process(target=_work, args=(theirs, function), daemon=True)
        with _one_thread():
            self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task = task
        try:
            self.pipe.send(task)
        except OSError:
            pass  # it is dead; reading from it will say so

    def end(self) -> Died:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return Died(self.process.exitcode)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Libraries read these when they are loaded: they must be there before the process is."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Any, function: Callable[[Any], Any]) -> None:
    """The life of a process: it ends with its parent, also in the middle of a task, and Ctrl-C is its parent's to handle."""
    if hasattr(os, "setsid"):
        os.setsid()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        pipe.send(READY)
        while True:
            pipe.send(function(pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with_parent() -> None:
    """Nobody waits for what this process is doing, and whoever goes on in the parent's place does it again."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
