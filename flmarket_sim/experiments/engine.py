"""The engine: tasks without a result go to a crew, and every result goes to a store."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

from flmarket_sim.author_frames import failure_text
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments.store import MemoryStore, Store
from flmarket_sim.experiments.task import Task
from flmarket_sim.experiments.worker_processes import Crew, Died, ThisProcess

Progress = Callable[[int, int], None]
SomeTask = TypeVar("SomeTask", bound=Task)


@dataclass(frozen=True)
class Failure:
    """Stands in the place of a result: what went wrong, in words for people.

    `wrong_input` says that the user's input is the cause.
    """

    message: str
    wrong_input: bool = False


@dataclass(frozen=True)
class Guarded:
    """Calls `measure` with one torch thread, and turns every exception into a Failure."""

    measure: Callable[[Any], Any]

    def __call__(self, task: Any) -> Any:
        from flmarket_sim.threads import one_torch_thread

        try:
            with one_torch_thread():
                return self.measure(task)
        except FlmarketError as error:
            return Failure(failure_text(error, own=True), isinstance(error, InputError))
        except Exception as error:  # a plug-in can fail in any way
            return Failure(failure_text(error, own=False))


def perform(
    tasks: Sequence[SomeTask],
    measure: Callable[[SomeTask], Any],
    *,
    crew: Crew | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    receive: Callable[[SomeTask, Any], Any] | None = None,
) -> Generator[tuple[SomeTask, Any], None, None]:
    """Each distinct task with its result, or with a Failure, as soon as it is there.

    `measure` must be importable by name, and its results must be values that JSON can express. The
    engine does not repeat a task whose key is in the store. It stores no failure, so the same call
    tries a failed task again. If `measure` returns more than JSON can express, `receive(task,
    answer)` makes the result of it in this process, before it is stored.
    """
    results = MemoryStore() if store is None else store
    distinct = {task.key: task for task in tasks}
    finished = [task for key, task in distinct.items() if key in results]
    waiting = [task for key, task in distinct.items() if key not in results]
    report = progress or (lambda done, total: None)
    report(len(finished), len(distinct))
    yield from ((task, results[task.key]) for task in finished)
    with closing((crew or ThisProcess()).perform(Guarded(measure), waiting)) as performed:
        for done, (task, result) in enumerate(performed, len(finished) + 1):
            if isinstance(result, Died):
                result = Failure(str(result))
            elif receive is not None and not isinstance(result, Failure):
                result = receive(task, result)
            if not isinstance(result, Failure):
                results.add(task.key, result)
                result = results[task.key]
            report(done, len(distinct))
            yield task, result


def results_of(
    tasks: Sequence[SomeTask],
    measure: Callable[[SomeTask], Any],
    *,
    crew: Crew | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """The result of every task, in the order of the tasks. The first failure raises an error."""
    results = {}
    for task, result in perform(tasks, measure, crew=crew, store=store, progress=progress):
        if isinstance(result, Failure):
            kind = InputError if result.wrong_input else FlmarketError
            raise kind(f"{task.label}: {result.message}")
        results[task.key] = result
    return [results[task.key] for task in tasks]
