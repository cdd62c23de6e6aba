"""Crews on this machine: this process, or several processes with one thread each.

A crew does tasks. Unlike the pools of the standard library, `Processes` knows which task a dead
process had: that task is lost, and the others do not notice. dask_crew.py has a crew on a cluster.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any, Generic, Protocol, TypeVar

from flmarket_sim.errors import FlmarketError
from flmarket_sim.experiments.started_deaf import hear_no_ctrl_c, started_deaf

AnyTask = TypeVar("AnyTask")
Result = TypeVar("Result")
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
READY = "ready"
MOST_LOST_STARTS = 5


@dataclass(frozen=True)
class Died:
    """Stands in the place of a result: the process of the task ended before it had one.

    On a cluster, `workers` is how many workers ended with the task.
    """

    exit_code: int | None
    workers: int = 0

    def __str__(self) -> str:
        code = self.exit_code
        if self.workers:
            return (
                "the cluster lost the worker that had this task, and nothing else, "
                f"{self.workers} time(s) in a row"
            )
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        return f"its process was ended {how} before the task was done"


class Crew(Protocol):
    """Does tasks, on this machine or elsewhere."""

    @property
    def shares_disk(self) -> bool:
        """Whether its processes write to the disk that this process reads."""
        ...

    def perform(
        self, function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask]
    ) -> Generator[tuple[AnyTask, Result | Died], None, None]:
        """Each task with `function(task)`, in the order in which tasks end."""
        ...


@dataclass(frozen=True)
class ThisProcess:
    """This process does one task after the other."""

    shares_disk: bool = True

    def perform(
        self, function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask]
    ) -> Generator[tuple[AnyTask, Result | Died], None, None]:
        for task in tasks:
            yield task, function(task)


@dataclass(frozen=True)
class Processes:
    """`workers` processes of this machine."""

    workers: int
    shares_disk: bool = True

    def perform(
        self, function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask]
    ) -> Generator[tuple[AnyTask, Result | Died], None, None]:
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
        self, function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask]
    ) -> Generator[tuple[AnyTask, Result | Died], None, None]:
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
    function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask], workers: int
) -> Generator[tuple[AnyTask, Result | Died], None, None]:
    """Each task with `function(task)`, in the order in which tasks end.

    Closing the generator ends all processes. `function` must be importable by name. If it raises an
    exception, its process has died.
    """
    waiting, lost = deque(tasks), 0
    crew: list[WorkerProcess[AnyTask]] = []
    try:
        for _ in range(min(workers, len(tasks))):
            crew.append(WorkerProcess(function))  # one by one: an interrupt ends those before
        while crew:
            for ready in connection.wait([worker.pipe for worker in crew]):
                worker = next(worker for worker in crew if worker.pipe is ready)
                try:
                    message: Any = worker.pipe.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    died = worker.end()
                    if (
                        worker.task is None
                        and (died.exit_code or 0) < 0
                        and lost < MOST_LOST_STARTS
                    ):
                        lost += 1  # it was killed while it was starting: no task is to blame
                        if waiting:
                            crew.append(WorkerProcess(function))
                        continue
                    if worker.task is None:
                        raise FlmarketError(
                            f"a worker process could not start (exit code {died.exit_code}); a "
                            "script that starts workers needs `if __name__ == '__main__':` around "
                            "its calls"
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
                if message != READY and done is not None:
                    yield done, message
    finally:
        for worker in crew:
            worker.end()


class WorkerProcess(Generic[AnyTask]):
    """A process and the task that it has."""

    def __init__(self, function: Callable[[AnyTask], Any]) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.task: AnyTask | None = None
        self.process = context.Process(
            target=_work, args=(theirs, function, os.getcwd()), daemon=True
        )
        with _one_thread(), started_deaf():
            self.process.start()
        theirs.close()

    def give(self, task: AnyTask) -> None:
        self.task = task
        try:
            self.pipe.send(task)
        except OSError:
            pass  # the process is dead, and reading from the pipe will show it

    def end(self) -> Died:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return Died(self.process.exitcode)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sets the variables that limit threads: libraries read them when they are loaded."""
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


def _work(pipe: Any, function: Callable[[Any], Any], directory: str) -> None:
    """The main function of a worker process, in the working directory of the one that started it.

    It ends with its parent, also in the middle of a task.
    """
    os.chdir(directory)  # names of files are relative to it
    hear_no_ctrl_c()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        pipe.send(READY)
        while True:
            pipe.send(function(pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with_parent() -> None:
    """Without its parent, nobody waits for the result of this process."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
