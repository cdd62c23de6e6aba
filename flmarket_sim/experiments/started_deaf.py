"""Processes that start deaf to Ctrl-C.

A terminal sends Ctrl-C to every process of a command, also to those that are still importing their
modules, and these would print a traceback each. A process inherits the signals that are blocked
where it is started. So they are blocked around a start: the new process hears nothing until it
ignores them itself, and the starting process hears them afterwards.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def started_deaf() -> Iterator[None]:
    """Processes and threads that start in the block hear no SIGINT and no SIGTERM."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its own start would unblock them again
    with _handled_later():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _handled_later() -> Iterator[None]:
    """Signals in the block take effect after it: another thread may hear what this one blocks.

    Python calls handlers in the main thread only, so other threads are never disturbed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    known = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, lambda came, _: heard.append(came))
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for came in heard:
            signal.raise_signal(came)


def hear_no_ctrl_c() -> None:
    """Ctrl-C never reaches this process; SIGTERM ends it as usual."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
