"""Directories for results: nothing is written over, and two writers never share one."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flmarket_sim.errors import InputError

LOCK = ".lock"
HIDDEN = (".run.json.tmp", ".sweep.json.tmp")  # what a kill may have left before anything was begun
_held: dict[Path, int] = {}  # claimed and still empty: a lock says so until the first file does


def result_folder(name: str, digest: str) -> Path:
    """runs/NAME-HASH, whatever the name is."""
    safe = re.sub(r"[^\w.-]+", "-", name)[:60]
    return Path("runs") / f"{safe}-{digest[:8]}"


def free_folder(name: str, digest: str) -> Path:
    """runs/NAME-HASH, with a number behind it where that is taken."""
    base = result_folder(name, digest)
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}.{number}")
    return folder


def claim(folder: Path, what: str) -> None:
    """Makes a directory, or takes an empty one; refuses every other place. `what` is what it is for: "run", "study".

    Of two processes that want the same directory at the same moment, one gets it.
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
                f"{folder} is not empty: a {what} needs a new or empty directory; name another with --out"
            )
        _held[folder.resolve()] = lock
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is a file; a {what} needs a new or empty directory") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise InputError(f"{folder} cannot be made or read: {error}") from None


def lock(folder: Path, what: str) -> int:
    """A handle that keeps other writers out of a directory until it is closed, or its process ends in any way."""
    return _locked(folder / LOCK, f"another process is running a {what} in {folder}")


@contextmanager
def alone(path: Path, refusal: str) -> Iterator[None]:
    """No other process is in here with the same lock file `path`, which is gone afterwards."""
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
    """Lets go of directories that have files by now, or are gone, and of one that this process wants a second time."""
    for folder, lock in list(_held.items()):
        if folder == wanted or not folder.is_dir() or any(folder.iterdir()):
            os.close(lock)
            del _held[folder]
