"""Directories for results: nothing is overwritten, and each has at most one writer."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flmarket_sim.errors import InputError

LOCK = ".lock"
HIDDEN = (".run.json.tmp", ".sweep.json.tmp")  # a kill before the start may leave these behind
_held: dict[Path, int] = {}  # locks of claimed directories that are still empty


def result_folder(name: str, digest: str) -> Path:
    """runs/NAME-HASH, without the characters of the name that a path cannot have."""
    safe = re.sub(r"[^\w.-]+", "-", name)[:60]
    return Path("runs") / f"{safe}-{digest[:8]}"


def free_folder(name: str, digest: str) -> Path:
    """runs/NAME-HASH, followed by a number if that is taken."""
    base = result_folder(name, digest)
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}.{number}")
    return folder


def claim(folder: Path, what: str) -> None:
    """Makes a directory for a result, or takes an empty one; refuses every other place.

    `what` is the kind of result, for messages: "run", "study". If two processes want the same
    directory at the same moment, one of them gets it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _release(folder.resolve())
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise InputError(
                f"{folder} was just taken by another process; name another directory with --out"
            ) from None
        except OSError:
            pass  # a file system without locks
        if any(path.name != LOCK and path.name not in HIDDEN for path in folder.iterdir()):
            os.close(lock)
            raise InputError(
                f"{folder} is not empty: a {what} needs a new or empty directory; "
                "name another with --out"
            )
        _held[folder.resolve()] = lock
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is a file; a {what} needs a new or empty directory") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise InputError(f"{folder} cannot be made or read: {error}") from None


def lock(folder: Path, what: str) -> int:
    """A handle that keeps other writers out of a directory until it is closed.

    The end of the process closes it too.
    """
    return _locked(folder / LOCK, f"another process is running a {what} in {folder}")


@contextmanager
def alone(path: Path, refusal: str) -> Iterator[None]:
    """A block that one process at a time can enter, by the lock file `path`.

    The file is removed afterwards. `refusal` is the message to the other processes.
    """
    handle = _locked(path, refusal)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _locked(path: Path, refusal: str) -> int:
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise InputError(f"{path.parent} cannot be written: {error}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(refusal) from None
    except OSError:
        pass  # a file system without locks
    return handle


def _release(wanted: Path) -> None:
    """Releases directories that have files by now or are gone, and `wanted` itself."""
    for folder, lock in list(_held.items()):
        if folder == wanted or not folder.is_dir() or any(folder.iterdir()):
            os.close(lock)
            del _held[folder]
