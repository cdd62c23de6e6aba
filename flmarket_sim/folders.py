"""Directories for results: nothing is written over, and two writers never share one."""

from __future__ import annotations

from pathlib import Path

from flmarket_sim.errors import InputError


def claim(folder: Path, what: str) -> None:
    """Makes a directory, or takes an empty one; refuses every other place. `what` is what it is for: "run", "study"."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{folder} is not empty: a {what} needs a new or empty directory; name another with --out")
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is a file; a {what} needs a new or empty directory") from None
    except OSError as error:
        raise InputError(f"{folder} cannot be made or read: {error}") from None
