"""Running the checks of a contract, and collecting everything that they complain about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from flmarket_sim.errors import InputError, did_you_mean, shortened

Tried = TypeVar("Tried")


def complaints(
    checks: Mapping[str, Callable[[Tried], Iterator[str]]], only: Sequence[str], tried: Tried
) -> str:
    """What the checks named in `only` say of what is tried, a line each; empty if it is nothing.

    Refuses names of checks that do not exist.
    """
    for name in only:
        if name not in checks:
            raise InputError(
                f"there is no check {name!r}{did_you_mean(name, checks, '.')} Checks: "
                f"{', '.join(checks)}"
            )
    found: list[str] = []
    for name in only:
        try:
            with np.errstate(all="ignore"):
                found += list(checks[name](tried))
        except Exception as error:  # foreign code may fail in any way
            found.append(f"it failed ({name}): {type(error).__name__}: {shortened(str(error))}")
    return "\n".join(f"- {complaint}" for complaint in dict.fromkeys(found))
