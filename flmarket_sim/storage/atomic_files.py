"""Files that appear complete or not at all, even if the process is killed or the power fails."""

from __future__ import annotations

import errno
import io
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flmarket_sim.errors import FlmarketError


class DiskError(FlmarketError):
    """A file could not be written, for example since the disk is full."""


ANEW = (
    "Complete files stay readable; free some space, or name another place with `out`, "
    "and run the command again"
)


WAITS = (0.01, 0.05, 0.2, 0.5)  # seconds between attempts to replace a file that somebody reads


def disk_error(where: Path, error: OSError, advice: str = ANEW) -> DiskError:
    """The error for the user; `advice` says what to do once there is space again."""
    what = (
        "the disk is full"
        if error.errno in (errno.ENOSPC, errno.EDQUOT)
        else f"writing failed ({error})"
    )
    return DiskError(f"{what}: {where}. {advice}")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write` makes the file under a hidden name; it is renamed once it is safely on the disk."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        make_empty(fresh)
        write(fresh)
        sync(fresh)
        replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    sync(path.parent)


def make_empty(fresh: Path) -> None:
    """Makes a new file, in the place of one that a kill has left.

    The name is known, so in a folder that others can write somebody may have put a link there. It
    is removed and not followed, and a file that appears in between is refused.
    """
    fresh.unlink(missing_ok=True)
    os.close(without_links(os.fspath(fresh), os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def without_links(path: str, flags: int) -> int:
    """Opens a file as `os.open` does; a link in its place is an OSError."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def append_to(path: Path) -> io.FileIO:
    """A file, open for writing at its end; a link in its place is an OSError."""
    return io.FileIO(path, "a", opener=without_links)


def anew(path: Path) -> io.FileIO:
    """An empty file, open for writing; a link in its place is an OSError."""
    return io.FileIO(path, "w", opener=without_links)


def remove_folder(folder: Path) -> None:
    """Deletes a directory that may not be there; of a link, the link and not what it leads to."""
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def settle(hidden: Path, folder: Path) -> None:
    """Renames a hidden directory once everything in it is safely on the disk."""
    for path in (*hidden.rglob("*"), hidden):
        sync(path)
    replace(hidden, folder)
    sync(folder.parent)


def write_text(path: Path, text: str) -> None:
    """A text file in UTF-8 that appears complete or not at all."""
    write_whole(path, lambda fresh: fresh.write_text(text, encoding="utf-8", newline="\n"))


def write_parquet(path: Path, table: pa.Table) -> None:
    """A Parquet file that appears complete or not at all."""
    write_whole(path, lambda fresh: write_table(table, fresh))


def write_table(table: pa.Table, path: Path, **options: Any) -> None:
    """A Parquet file with a checksum for each page."""
    pq.write_table(table, path, compression="zstd", write_page_checksum=True, **options)


def replace(fresh: Path, path: Path) -> None:
    """Renames a file over another one, or a directory.

    Windows refuses this while somebody has the old file open; a reader is given a moment to finish.
    """
    for wait in WAITS if os.name == "nt" else ():
        try:
            fresh.replace(path)
            return
        except PermissionError:
            time.sleep(wait)
    fresh.replace(path)


def sync(path: Path) -> None:
    """Waits until a file, or the names in a directory, are on the disk.

    Windows cannot open directories, and some file systems cannot synchronise them. There the
    names follow later.
    """
    folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    except PermissionError:
        if folder:
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
