"""`python -m tests.support.killed_command N ARGUMENTS`: `flmarket ARGUMENTS`, killed at a result.

The process kills itself as soon as its N-th result is on disk, and prints the numbers of its own
processes before. The moment does not depend on the machine, so the command can neither end before
nor be killed while it still starts.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from itertools import count

from flmarket_sim.cli import main
from flmarket_sim.experiments.store import FileStore
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE


def run_killed(number, *arguments, cwd=ROOT):
    """Starts a command that dies at its N-th result; gives the numbers of the processes it had."""
    module = ("-m", "tests.support.killed_command", number)
    command = [sys.executable, *map(str, (*module, *arguments))]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    killed = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=environment, timeout=PATIENCE
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return killed.stdout.split()


def kill_at(number):
    results, add = count(1), FileStore.add

    def add_and_die(store, key, result):
        add(store, key, result)
        if next(results) == number:
            print(*(child.pid for child in multiprocessing.active_children()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    FileStore.add = add_and_die


if __name__ == "__main__":
    kill_at(int(sys.argv.pop(1)))
    main()
