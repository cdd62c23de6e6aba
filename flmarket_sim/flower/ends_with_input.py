"""A process that ends when its standard input ends, so that it does not outlive who has started it.

    python -m flmarket_sim.flower.ends_with_input MODULE:FUNCTION ARGUMENT...

Who starts it holds the other end of its input. The system closes that end with its holder, however
that one ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module

FORCE = 8.0  # seconds after which a program that was asked to end is ended
COLLECTIONS = (50_000, 20, 100)


def when_input_ends(do: Callable[[], None]) -> None:
    """Calls `do` in a thread of its own when the standard input has ended. The rest of the process,
    and what it starts, finds an empty input."""
    line = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)

    def wait() -> None:
        while os.read(line, 4096):
            pass
        do()

    threading.Thread(target=wait, daemon=True).start()


def _end() -> None:
    """Ends this process: in order if it can, and else at once."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(FORCE)
    os._exit(1)


if __name__ == "__main__":
    when_input_ends(_end)
    sys.argv = sys.argv[1:]
    module, _, name = sys.argv[0].partition(":")
    program = getattr(import_module(module), name)
    gc.freeze()  # a server makes and drops much for every request, and keeps little:
    gc.set_threshold(*COLLECTIONS)  # to look for it less often saves a tenth of its time
    program()
