"""A server that Flower starts ends with the process that wanted it, however that one ends.

Flower starts the process of a server app by others of its own, and it would outlive them by
minutes. So the one who wants a run listens on loopback, and the server holds a connection to it
(`lifeline` in the run's configuration): when the connection ends, so does the server.
"""

from __future__ import annotations

import _thread
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FORCE = 8.0  # seconds after which a server that was asked to end is ended


class Lifeline:
    """Servers that hold `address` end when this is closed, or when its process ends."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._held: list[socket.socket] = []
        self._last = socket.socket()  # its connection comes after those of all servers
        self._last.bind(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        end = self._last.getsockname()
        while True:
            line, comes_from = self._listener.accept()
            if comes_from == end:
                line.close()
                return
            self._held.append(line)

    def close(self, patience: float = 0.0) -> None:
        """Waits until the servers have ended; ends those that go on after `patience` seconds."""
        self._last.connect(self._listener.getsockname())
        self._thread.join()
        self._last.close()
        self._listener.close()
        end = time.monotonic() + patience
        going_on = [one for one in self._held if not _ended(one, end)]
        end = time.monotonic() + 2 * FORCE
        for one in going_on:
            with suppress(OSError):
                one.shutdown(socket.SHUT_WR)
        for one in going_on:
            _ended(one, end)
        for one in self._held:
            one.close()


def _ended(line: socket.socket, end: float) -> bool:
    """Whether the other end of a line is gone before a moment."""
    try:
        line.settimeout(None if end == math.inf else max(end - time.monotonic(), 0.01))
        return not line.recv(1)
    except TimeoutError:
        return False
    except OSError:
        return True


@contextmanager
def held(address: str) -> Iterator[None]:
    """If the lifeline at `address` ends within this block, so does the process: by Ctrl-C's
    exception, and some seconds later at once."""
    host, _, port = address.rpartition(":")
    try:
        line = socket.create_connection((host, int(port)))
    except OSError:
        raise KeyboardInterrupt from None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    done, turn = threading.Event(), threading.Lock()
    threading.Thread(target=_watch, args=(line, done, turn), daemon=True).start()
    try:
        yield
    finally:
        try:
            with turn:  # from here on nobody interrupts what comes after the block
                done.set()
        finally:
            done.set()
            signal.signal(signal.SIGINT, before)
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


def _watch(line: socket.socket, done: threading.Event, turn: threading.Lock) -> None:
    with line:
        _ended(line, math.inf)
    with turn:
        if done.is_set():
            return
        _interrupt()
    if not done.wait(FORCE):
        os._exit(1)


def _interrupt() -> None:
    """Ctrl-C for this process. A signal also ends a call of the system that waits."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
