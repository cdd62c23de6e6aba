"""`python -m tests.support.interrupted_command SIGNAL ARGUMENTS`: `flmarket` interrupts itself.

The process sends itself the signal as soon as its first result is on disk. The moment does not
depend on the machine. Children that are alive then are named on stdout, each in a line.
"""

import multiprocessing
import os
import signal
import sys

from flmarket_sim.cli import main
from flmarket_sim.experiments.store import FileStore


def interrupt_at_first_result(number):
    add = FileStore.add

    def add_and_signal(store, key, result):
        add(store, key, result)
        for child in multiprocessing.active_children():
            print("child", child.pid, flush=True)
        os.kill(os.getpid(), number)

    FileStore.add = add_and_signal


if __name__ == "__main__":
    interrupt_at_first_result(signal.Signals[sys.argv.pop(1)])
    main()
