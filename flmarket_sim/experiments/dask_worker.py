"""The part that runs on a worker of a cluster: it checks that the worker is fit, then does tasks.

A task has the same kind of process here as on one machine (worker_processes.py), with one thread.
If a task ends its process, the worker reports this and continues. A worker with many threads has a
process for each thread.
"""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flmarket_sim.experiments.task import environment
from flmarket_sim.experiments.worker_processes import Died, WorkerProcess

Facts = dict[str, str]


@dataclass(frozen=True)
class Done:
    """Results of the first tasks of a batch, and their seconds. The other tasks were not begun."""

    results: list[Any]
    seconds: float


@dataclass(frozen=True)
class Unfit:
    """This worker could give other results than the client's machine, for this reason."""

    reason: str

    def __str__(self) -> str:
        return self.reason


def pack_batch(function: Callable[[Any], Any], tasks: list[Any]) -> bytes:
    return pickle.dumps((function, tasks), pickle.HIGHEST_PROTOCOL)


def work_off(batch: bytes, expected: Facts, seconds: float) -> Done | Unfit:
    """Does the tasks of a batch until `seconds` have passed, at least one."""
    here = environment()
    wrong = [
        f"{name} {here.get(name)} instead of {wanted}"
        for name, wanted in expected.items()
        if here.get(name) != wanted
    ]
    if wrong:
        return Unfit("it has " + ", ".join(wrong))
    try:
        function, tasks = pickle.loads(batch)
    except (ImportError, AttributeError) as error:
        return Unfit(f"it cannot read its task ({error})")
    results: list[Any] = []
    process = _take()
    began = time.perf_counter()
    for task in tasks:
        if results and time.perf_counter() - began > seconds:
            break
        if process is None:
            process = _start()
        if process is None:
            return Unfit("it cannot start a process for tasks")
        try:
            process.give((function, task))
            results.append(process.pipe.recv())
        except (EOFError, OSError):
            results.append(Died(process.end().exit_code))
            process = None
    if process is not None:
        _idle.append(process)
    return Done(results, time.perf_counter() - began)


_idle: list[WorkerProcess[Any]] = []
_alive: weakref.WeakSet[WorkerProcess[Any]] = weakref.WeakSet()
_starting = threading.Lock()
_ended = False


@contextmanager
def processes_until_the_end() -> Iterator[None]:
    """For workers that are threads of this process: after the block no task has a process.

    A thread that waits for one sees that it died, and starts no other.
    """
    global _ended
    _ended = False
    try:
        yield
    finally:
        _ended = True
        with _starting:
            ending = list(_alive)
        _idle.clear()
        for process in ending:
            process.process.kill()
            process.process.join()


def _take() -> WorkerProcess[Any] | None:
    """An idle process that is alive, or a new one: no task is blamed for what came before it."""
    while True:
        try:
            process = _idle.pop()
        except IndexError:
            return _start()
        if process.process.is_alive():
            return process
        process.end()


def _start() -> WorkerProcess[Any] | None:
    with _starting:
        if _ended:
            return None
        # a nanny's worker is a daemon, and daemons may not have children
        multiprocessing.current_process().daemon = False
        process: WorkerProcess[Any] = WorkerProcess(_call)
        _alive.add(process)
    try:
        process.pipe.recv()
    except (EOFError, OSError):
        process.end()
        return None
    return process


def _call(work: tuple[Callable[[Any], Any], Any]) -> Any:
    function, task = work
    return function(task)
