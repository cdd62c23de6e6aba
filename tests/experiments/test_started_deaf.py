"""A worker process hears no Ctrl-C, not even while it imports its modules."""

import os
import signal

import pytest

from flmarket_sim.experiments.started_deaf import SIGNALS, started_deaf
from flmarket_sim.experiments.worker_processes import READY, WorkerProcess

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="this system has no blocked signals"
)


def ignored(task):
    """What a task sees of the two signals in its process."""
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN, signal.pthread_sigmask(0, ())


@pytest.mark.processes
def test_a_worker_that_is_interrupted_while_it_starts_starts_all_the_same():
    worker = WorkerProcess(ignored)
    try:
        os.kill(worker.process.pid, signal.SIGINT)  # as a terminal does to all of a command
        assert worker.pipe.recv() == READY
        worker.give(0)
        assert worker.pipe.recv() == (True, set())
    finally:
        worker.end()


def test_a_signal_during_a_start_comes_afterwards(monkeypatch):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with started_deaf():
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard == [] and set(SIGNALS) <= signal.pthread_sigmask(0, ())
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_systems_start_processes_as_ever(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with started_deaf():
        pass
