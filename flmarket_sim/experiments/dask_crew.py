"""Tasks on a cluster of Dask workers: a crew like the processes of one machine, with the same results.

A task has no effect but its answer, so it can be done again anywhere. Dask does so when a worker is lost; what is lost again and again is
at last done alone, with nothing else on the cluster, and given up only then: whoever merely stood beside it is not blamed.
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
from flmarket_sim.experiments.worker_processes import Died, Result, Task

BATCH_SECONDS = 0.25  # short runs go together: this much work, and the run after it, is what a lost worker costs
MOST_IN_A_BATCH = 256
BATCHES_A_THREAD = 2  # one to do, and one that is there when it is done
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 30.0
STAYS = "what is finished is on disk, and the same command does the rest"
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
    """A connection to a scheduler: its name in messages, and what keeps its workers at their number."""

    client: Client
    name: str
    advice: str
    keep_up: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class DaskCrew:
    """The workers of a cluster. `open_place` connects, and takes down at the end what it started."""

    open_place: Callable[[], Any]  # a context manager of a Place
    patience: float  # seconds without a single worker
    tell: Callable[[str], None] = lambda text: None
    shares_disk: bool = False

    def perform(
        self, function: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Generator[tuple[Task, Result | Died], None, None]:
        if not tasks:
            return
        with _quiet(), self.open_place() as place:
            self.tell(f"cluster: {place.name}; waiting for a worker, at most {self.patience:g} s")
            errands: _Errands[Task] = _Errands(place, function, tasks, self.patience)
            errands.wait_for_a_worker()
            self.tell(
                f"cluster: {len(tasks):,} runs to do, {errands.threads:,} at a time with the workers that are there now"
            )
            yield from errands.run()


@dataclass
class _Batch(Generic[Task]):
    future: Future
    tasks: list[Task]
    alone: bool


class _Errands(Generic[Task]):
    """The tasks of one call: what waits, what is out, what is under suspicion of ending its workers."""

    def __init__(
        self, place: Place, function: Callable[[Task], Any], tasks: Sequence[Task], patience: float
    ) -> None:
        self.place, self.function, self.patience = place, function, patience
        self.waiting, self.suspects = deque(tasks), deque[Task]()
        self.out: dict[str, _Batch[Task]] = {}
        self.back: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.facts: Facts = environment()
        self.errand = _errand()
        self.name, self.sent = f"flmarket-{uuid.uuid4().hex}", 0
        self.pace: float | None = None  # seconds a task
        self.threads = 0
        self.looked = self.seen = time.monotonic()

    def run(self) -> Iterator[tuple[Task, Any]]:
        while self.waiting or self.suspects or self.out:
            self._send()
            yield from self._answers(self._next())

    def wait_for_a_worker(self) -> None:
        self._look()
        while not self.threads:
            time.sleep(0.1)
            self._look()

    def _send(self) -> None:
        """Enough that nobody is idle, and no more: what is not sent yet can still go to a worker that comes later."""
        most = BATCHES_A_THREAD * max(
            1, self.threads
        )  # also while nobody is there: who comes next finds something to do
        while self.waiting and len(self.out) < most:
            fair = len(self.waiting) // (2 * most)
            fits = 1 if self.pace is None else int(BATCH_SECONDS / max(self.pace, 1e-9))
            size = max(1, min(fair, fits, MOST_IN_A_BATCH))
            self._submit([self.waiting.popleft() for _ in range(size)], alone=False)
        if self.suspects and not self.out:
            self._submit([self.suspects.popleft()], alone=True)

    def _submit(self, tasks: list[Task], alone: bool) -> None:
        self.sent += 1
        key = f"{self.name}-{self.sent}"
        with self._errors():
            future = self.place.client.submit(
                self.errand,
                pack_batch(self.function, tasks),
                self.facts,
                BATCH_SECONDS,
                key=key,
                pure=False,
            )
            self.out[key] = _Batch(future, tasks, alone)
            future.add_done_callback(self.back.put)

    def _next(self) -> _Batch[Task]:
        while True:
            if time.monotonic() - self.looked > LOOK_SECONDS:
                self._look()
            try:
                return self.out[str(self.back.get(timeout=LOOK_SECONDS).key)]
            except queue.Empty:
                continue

    def _answers(self, batch: _Batch[Task]) -> Iterator[tuple[Task, Any]]:
        try:
            with self._errors():
                answer: Done | Unfit | str = batch.future.result(timeout=ANSWER_SECONDS)
        except TimeoutError:  # the worker was lost with its answer; Dask has it done again
            batch.future.add_done_callback(self.back.put)
            return
        except KilledWorker as killed:
            del self.out[str(batch.future.key)]
            if batch.alone:
                yield batch.tasks[0], Died(None, workers=killed.allowed_failures + 1)
            else:
                self.suspects += batch.tasks
            return
        del self.out[str(batch.future.key)]
        if not isinstance(answer, Done):
            raise FlmarketError(
                f"a worker of {self.place.name} is not fit for this sweep: {answer}. Its results could differ from those of the "
                f"others; install the same versions everywhere. None of its results was taken; {STAYS}"
            )
        done = len(answer.results)
        self.pace = answer.seconds / done
        self.waiting.extendleft(reversed(batch.tasks[done:]))
        yield from zip(batch.tasks, answer.results, strict=False)

    def _look(self) -> None:
        """Who is there? Nobody for too long ends the sweep, and so does a scheduler that does not answer."""
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
                f"A longer wait: --cluster-wait SECONDS; {STAYS}"
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What Dask says, in the words of somebody who runs a sweep."""
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
                f"{self.place.name} cannot do the runs of this sweep: {type(cause).__name__}: {_first_line(cause)}. Scheduler and "
                f"workers need flmarket_sim, and what its plug-ins import, as it is here; {STAYS}"
            ) from error

    def _lost_scheduler(self, error: Exception) -> bool:
        return isinstance(error, OSError | CancelledError) or self.place.client.status != "running"


def _errand() -> Callable[[bytes, Facts, float], Any]:
    """What a worker is asked to do. A function inside a function travels by value: a worker without flmarket_sim can say so,
    where one that could not read its task would end."""

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
    """Dask tells every lost connection on stderr; what matters of it is in our own messages."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
