"""Directories for results: nothing is overwritten, and each has at most one writer.

A writer holds the lock of a file `.lock` in her directory. The operating system keeps such a lock
and drops it with the process that holds it, even if that process is killed. A file that a kill
has left locks nothing.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from flmarket_sim.errors import InputError

LOCK = ".lock"
HIDDEN = (".run.json.tmp", ".sweep.json.tmp")  # a kill before the start may leave these behind
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
ATTEMPTS = 20  # to lock a file that others delete at the same moment
_held: dict[Path, BaseFileLock] = {}  # locks of claimed directories that are still empty


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
    directory at the same moment, one of them gets it. The claim lasts until `lock` or `give_up`
    takes it over, until this process claims again after it has written files, or until it ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _release(folder.resolve())
        _refuse_files(folder, what)
        mine = _locked(
            folder / LOCK,
            f"{folder} was just taken by another process; name another directory with `out`",
        )
        try:
            _refuse_files(folder, what)  # another process may have used it before we had the lock
        except InputError:
            mine.release()
            raise
        _held[folder.resolve()] = mine
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{folder} is a file; a {what} needs a new or empty directory") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL
        raise InputError(f"{folder} cannot be made or read: {error}") from None


def lock(folder: Path, what: str) -> BaseFileLock:
    """A lock that keeps other writers out of a directory until it is released.

    The end of the process releases it too. If this process has claimed the directory, the lock is
    that of the claim.
    """
    claimed = _held.pop(folder.resolve(), None)
    if claimed is not None:
        return claimed
    return _locked(folder / LOCK, f"another process is running a {what} in {folder}")


def remove_lock_file(path: Path) -> None:
    """Deletes a lock file at the end of the work that it guards, while its lock is still held.

    Windows cannot delete a file that is open. There the release of the lock deletes it. A lock file
    that a broken disk keeps does no harm: nobody holds its lock.
    """
    with suppress(OSError):
        path.unlink(missing_ok=True)


def give_up(folder: Path) -> None:
    """Ends a claim: the directory is as it was before, if nothing was written into it."""
    _drop(folder.resolve())


@contextmanager
def alone(path: Path, refusal: str) -> Iterator[None]:
    """A block that one process at a time can enter, by the lock file `path`.

    The file is removed afterwards. `refusal` is the message to the other processes.
    """
    mine = _locked(path, refusal)
    try:
        yield
    finally:
        remove_lock_file(path)
        mine.release()


def _refuse_files(folder: Path, what: str) -> None:
    if _has_files(folder):
        raise InputError(
            f"{folder} is not empty: a {what} needs a new or empty directory; "
            "name another with `out`"
        )


def _has_files(folder: Path) -> bool:
    return any(path.name != LOCK and path.name not in HIDDEN for path in folder.iterdir())


def _locked(path: Path, refusal: str) -> BaseFileLock:
    """The lock of a file. Where the file system has no locks, it keeps nobody out."""
    if not path.parent.is_dir():  # FileLock would make it
        raise InputError(f"{path.parent} cannot be written: there is no such directory")
    for _ in range(ATTEMPTS):
        mine = FileLock(path, thread_local=False)
        try:
            mine.acquire(blocking=False)
        except Timeout:
            break
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise InputError(f"{path.parent} cannot be written: {error}") from None
            return mine
        if _guards(mine, path):
            return mine
        mine.release()
    raise InputError(refusal)


def _guards(mine: BaseFileLock, path: Path) -> bool:
    """Whether a lock is that of the file which has the name now.

    Another process may have deleted its lock file after we had opened it. Then our lock is that of
    a file without a name, and whoever comes next locks another file. (Windows does not delete files
    that are open.)
    """
    handle = getattr(getattr(mine, "_context", None), "lock_file_fd", None)
    if os.name == "nt" or handle is None:
        return True
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _release(wanted: Path) -> None:
    """Ends the claims to directories that have files by now or are gone, and to `wanted` itself."""
    for folder in list(_held):
        if folder == wanted or not folder.is_dir() or _has_files(folder):
            _drop(folder)


def _drop(folder: Path) -> None:
    if mine := _held.pop(folder, None):
        remove_lock_file(folder / LOCK)
        mine.release()


@atexit.register
def _release_all() -> None:
    for folder in list(_held):
        with suppress(OSError):
            _drop(folder)
