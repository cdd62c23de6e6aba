"""Trials that end badly. They import nothing of the project, so their processes start at once."""

import os
import time
from functools import partial


def dying(doomed):
    """Trials of which one kills its process."""
    return partial(_trial, doomed)


def hanging():
    return _hang


def _trial(doomed, index):
    if index == doomed:
        os._exit(7)
    return index * 10


def _hang(index):
    time.sleep(10_000)
