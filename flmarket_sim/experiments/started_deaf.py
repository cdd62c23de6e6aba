"""Processes that start deaf to Ctrl-C.

A terminal sends Ctrl-C to every process of a command, also to those that are still importing their
modules, and these would print a traceback each. A process inherits the signals that are blocked
where it is started. So they are blocked around a start: the new process hears nothing until it
ignores them itself, and the starting process hears them afterwards.
"""

from __future__ import annotations

import os
import signal
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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def hear_no_ctrl_c() -> None:
    """Ctrl-C never reaches this process; SIGTERM ends it as usual."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
