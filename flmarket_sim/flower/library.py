"""Flower, imported where it is needed: without telemetry, and quiet enough for people to read."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from importlib import import_module
from typing import Any

from flmarket_sim.errors import InputError

# Flower reads these when it is imported, and so do the processes that it starts.
SETTINGS = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_LOG_LEVEL": "WARNING",
}
MISSING = (
    "a market of real clients needs Flower, which is not installed: "
    "pip install 'flmarket-sim[flower]'"
)


def flower(module: str = "flwr.app") -> Any:
    """A module of Flower. Raises InputError if Flower is not installed."""
    os.environ.update(SETTINGS)
    try:
        made = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "flwr":
            raise
        raise InputError(MISSING) from None
    quieten()
    return made


def quieten() -> None:
    """Flower says what went wrong, and not what goes well."""
    logging.getLogger("flwr").setLevel(logging.WARNING)
    for name in ("httpx", "httpcore", "uvicorn", "uvicorn.access"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=DeprecationWarning, module="flwr")


def environment(**settings: str) -> dict[str, str]:
    """The environment for a process of Flower: no telemetry, one thread for arithmetic."""
    return {**os.environ, **SETTINGS, "OMP_NUM_THREADS": "1", **settings}


def say(words: str) -> None:
    """Tells who started this process something, on her own screen."""
    print(f"flmarket: {words}", file=sys.stderr, flush=True)
