"""`python -m tests.support.killed_command N ARGUMENTS`: `flmarket ARGUMENTS`, killed at a result.

The process kills itself as soon as its N-th result is on disk. The moment does not depend on the
machine, so the command can neither end before nor be killed while it still starts.
"""

import os
import signal
import sys
from itertools import count

from flmarket_sim.cli import main
from flmarket_sim.experiments.store import FileStore


def kill_at(number):
    results, add = count(1), FileStore.add

    def add_and_die(store, key, result):
        add(store, key, result)
        if next(results) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    FileStore.add = add_and_die


if __name__ == "__main__":
    kill_at(int(sys.argv.pop(1)))
    main()
