"""Tasks: units of work as plain data, and the keys that identify their results."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import flmarket_sim
from flmarket_sim.market.provenance import versions

CODE = "flmarket-sim's code"


class Task(Protocol):
    """One unit of work: plain data that can be pickled and sent to any worker.

    `key` is a hash of everything that the result depends on; `label` names the task in messages.
    """

    @property
    def key(self) -> str: ...

    @property
    def label(self) -> str: ...


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """What every result depends on beside its task: the versions of libraries, and our own code.

    The code counts by its content, because a checkout can be edited without a new version number.
    """
    digest = hashlib.sha256()
    home = Path(flmarket_sim.__file__).parent
    for path in sorted(home.rglob("*")):
        if path.suffix in (".py", ".safetensors"):
            digest.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    return versions() | {CODE: digest.hexdigest()[:12]}


def task_key(*parts: str) -> str:
    """A key for a result that depends on these texts and on the environment."""
    facts = [f"{name}={value}" for name, value in sorted(environment().items())]
    return hashlib.sha256("\0".join([*facts, *parts]).encode()).hexdigest()[:24]
