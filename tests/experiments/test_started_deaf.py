"""A worker process hears no Ctrl-C, not even while it imports its modules."""

import os
import signal
import threading

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


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_a_start_comes_afterwards_whichever_thread_hears_it(number):
    heard, inside = [], threading.Event()
    before = signal.signal(number, lambda came, frame: heard.append(came))

    def hear_in_another_thread():
        inside.wait()
        signal.raise_signal(number)

    other = threading.Thread(target=hear_in_another_thread)  # it blocks nothing
    other.start()
    try:
        with started_deaf():
            signal.pthread_kill(threading.get_ident(), number)
            inside.set()
            other.join()
            assert heard == [] and set(SIGNALS) <= signal.pthread_sigmask(0, ())
        assert heard and set(heard) == {number}
    finally:
        signal.signal(number, before)


def test_other_systems_start_processes_as_ever(monkeypatch):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with started_deaf():
        pass
