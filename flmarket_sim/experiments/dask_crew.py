"""A crew on a cluster of Dask workers, with the same results as a crew on one machine.

A task has no effect except its answer, so it can be done again anywhere. Dask does this when a
worker is lost. A task that is lost again and again is done alone at the end, with nothing else on
the cluster, and fails only if it is lost then too: no task is blamed for its neighbour.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic

from distributed import Client, Future, KilledWorker

from flmarket_sim.errors import FlmarketError
from flmarket_sim.experiments.dask_worker import Done, Facts, Unfit, pack_batch
from flmarket_sim.experiments.task import environment
from flmarket_sim.experiments.worker_processes import AnyTask, Died, Result

BATCH_SECONDS = 0.25  # of short tasks that travel together: a lost worker costs one batch
MOST_IN_A_BATCH = 256
BATCHES_A_THREAD = 2  # one at work, and the next one
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 30.0
STAYS = "finished results are on disk, and the same command does the rest"
LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.scheduler",
    "distributed.worker",
    "distributed.nanny",
    "tornado",
    "tornado.application",
)


@dataclass(frozen=True)
class Place:
    """A connection to a scheduler. `name` and `advice` are for messages.

    `keep_up` replaces workers that were lost.
    """

    client: Client
    name: str
    advice: str
    keep_up: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class DaskCrew:
    """The workers of a cluster.

    `open_place` connects to the cluster, and at the end stops what it started. `patience` is how
    many seconds the cluster may be without a worker.
    """

    open_place: Callable[[], Any]  # a context manager of a Place
    patience: float
    say: Callable[[str], None] = lambda text: None
    shares_disk: bool = False

    def perform(
        self, function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask]
    ) -> Generator[tuple[AnyTask, Result | Died], None, None]:
        if not tasks:
            return
        with _quiet(), self.open_place() as place:
            self.say(f"cluster: {place.name}; waiting for a worker, at most {self.patience:g} s")
            dispatch: _Dispatch[AnyTask] = _Dispatch(place, function, tasks, self.patience)
            dispatch.wait_for_a_worker()
            self.say(
                f"cluster: {len(tasks):,} tasks to do, {dispatch.threads:,} at a time with the "
                "workers that are there now"
            )
            yield from dispatch.run()


@dataclass
class _Batch(Generic[AnyTask]):
    future: Future
    tasks: list[AnyTask]
    alone: bool


class _Dispatch(Generic[AnyTask]):
    """The tasks of one call: those that wait, those that are sent, and the suspects.

    A suspect is a task that was lost with its worker too often.
    """

    def __init__(
        self,
        place: Place,
        function: Callable[[AnyTask], Any],
        tasks: Sequence[AnyTask],
        patience: float,
    ) -> None:
        self.place, self.function, self.patience = place, function, patience
        self.waiting, self.suspects = deque(tasks), deque[AnyTask]()
        self.sent: dict[str, _Batch[AnyTask]] = {}
        self.answered: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.facts: Facts = environment()
        self.work = _portable_work()
        self.name, self.batches = f"flmarket-{uuid.uuid4().hex}", 0
        self.pace: float | None = None  # seconds a task
        self.threads = 0
        self.looked = self.seen = time.monotonic()

    def run(self) -> Iterator[tuple[AnyTask, Any]]:
        while self.waiting or self.suspects or self.sent:
            self._send()
            yield from self._answers(self._next())

    def wait_for_a_worker(self) -> None:
        self._look()
        while not self.threads:
            time.sleep(0.1)
            self._look()

    def _send(self) -> None:
        """Sends enough that no worker is idle. The rest can go to workers that come later."""
        most = BATCHES_A_THREAD * max(1, self.threads)
        while self.waiting and len(self.sent) < most:
            fair = len(self.waiting) // (2 * most)
            fits = 1 if self.pace is None else int(BATCH_SECONDS / max(self.pace, 1e-9))
            size = max(1, min(fair, fits, MOST_IN_A_BATCH))
            self._submit([self.waiting.popleft() for _ in range(size)], alone=False)
        if self.suspects and not self.sent:
            self._submit([self.suspects.popleft()], alone=True)

    def _submit(self, tasks: list[AnyTask], alone: bool) -> None:
        self.batches += 1
        key = f"{self.name}-{self.batches}"
        with self._errors():
            future = self.place.client.submit(
                self.work,
                pack_batch(self.function, tasks),
                self.facts,
                BATCH_SECONDS,
                key=key,
                pure=False,
            )
            self.sent[key] = _Batch(future, tasks, alone)
            future.add_done_callback(self.answered.put)

    def _next(self) -> _Batch[AnyTask]:
        while True:
            if time.monotonic() - self.looked > LOOK_SECONDS:
                self._look()
            try:
                return self.sent[str(self.answered.get(timeout=LOOK_SECONDS).key)]
            except queue.Empty:
                continue

    def _answers(self, batch: _Batch[AnyTask]) -> Iterator[tuple[AnyTask, Any]]:
        try:
            with self._errors():
                answer: Done | Unfit | str = batch.future.result(timeout=ANSWER_SECONDS)
        except TimeoutError:  # the worker was lost with its answer, and Dask does the batch again
            batch.future.add_done_callback(self.answered.put)
            return
        except KilledWorker as killed:
            del self.sent[str(batch.future.key)]
            if batch.alone:
                yield batch.tasks[0], Died(None, workers=killed.allowed_failures + 1)
            else:
                self.suspects += batch.tasks
            return
        del self.sent[str(batch.future.key)]
        if not isinstance(answer, Done):
            raise FlmarketError(
                f"a worker of {self.place.name} is not fit for these tasks: {answer}. Its results "
                "could differ from those of the others; install the same versions everywhere. None "
                f"of its results was taken; {STAYS}"
            )
        done = len(answer.results)
        self.pace = answer.seconds / done
        self.waiting.extendleft(reversed(batch.tasks[done:]))
        yield from zip(batch.tasks, answer.results, strict=False)

    def _look(self) -> None:
        """Counts the workers. Raises an error if there was none for too long."""
        self.place.keep_up()
        with self._errors():
            try:
                self.threads = sum(
                    self.place.client.nthreads(callback_timeout=ANSWER_SECONDS).values()
                )
            except TimeoutError as error:
                raise OSError(f"no answer in {ANSWER_SECONDS:g} s") from error
        self.looked = time.monotonic()
        if self.threads:
            self.seen = self.looked
        elif self.looked - self.seen > self.patience:
            raise FlmarketError(
                f"no worker at {self.place.name} for {self.patience:g} s. {self.place.advice} "
                f"`cluster_wait` SECONDS waits longer; {STAYS}"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turns Dask's errors into messages for people who run experiments."""
        try:
            yield
        except (KilledWorker, TimeoutError, FlmarketError):
            raise
        except Exception as error:
            if self._lost_scheduler(error):
                raise FlmarketError(
                    f"the scheduler at {self.place.name} went away ({_first_line(error)}); {STAYS}"
                ) from error
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise FlmarketError(
                f"{self.place.name} cannot do these tasks: {type(cause).__name__}: "
                f"{_first_line(cause)}. Scheduler and workers need flmarket_sim, and what its "
                f"plug-ins import, as it is here; {STAYS}"
            ) from error

    def _lost_scheduler(self, error: Exception) -> bool:
        return isinstance(error, OSError | CancelledError) or self.place.client.status != "running"


def _portable_work() -> Callable[[bytes, Facts, float], Any]:
    """The function that workers call. A function inside a function travels by value.

    So a worker without flmarket_sim can report this instead of failing to read its task.
    """

    def work(batch: bytes, expected: Facts, seconds: float) -> Any:
        try:
            from flmarket_sim.experiments.dask_worker import work_off
        except ImportError as error:
            return f"it cannot import flmarket_sim ({error})"
        return work_off(batch, expected, seconds)

    return work


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences Dask, which prints every lost connection: our own messages say what matters."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
