"""A disk that fails at one file operation under a folder: killed, full, broken, or torn.

What a kill leaves is the folder as it is on the disk at that moment. It is copied then, and an
exception ends the work. What the work still cleans up, a killed process would not have cleaned up.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import safetensors.torch
import torch

from flmarket_sim.eventlog import journal

BEFORE, AFTER, FULL, BROKEN, TORN = (
    "killed before",
    "killed after",
    "full disk",
    "I/O error",
    "torn write",
)
FAULTS = (BEFORE, AFTER, FULL, BROKEN, TORN)
KILLS = (BEFORE, AFTER, TORN)
CREATES = ("open", "mkdir")  # a full disk refuses these and what writes


class Killed(BaseException):
    """The process would be dead now."""


class FaultyDisk:
    """Counts the file operations under `folder`; operation number `at` meets the fault.

    A disk that is full refuses from there on whatever needs space.
    """

    def __init__(
        self, folder: Path, at: int = 0, fault: str = "", left: Path | None = None
    ) -> None:
        self.folder, self.at, self.fault, self.left = folder, at, fault, left
        self.count, self.what, self._over = 0, "", False
        self._places: dict[int, Path] = {}  # of open files

    def meet(self, name: str, place: Any, do: Callable[[], Any], writes: bool = False) -> Any:
        """Does an operation on a file, unless it meets the fault."""
        path = self._places.get(place) if isinstance(place, int) else Path(os.fspath(place))
        if self._over or path is None or not path.is_relative_to(self.folder):
            return do()
        self.count += 1
        full = self.fault == FULL and self.count >= self.at and (writes or name in CREATES)
        if not full and (self.fault == FULL or self.count != self.at):
            return do()
        self.what = self.what or f"{name} {path.relative_to(self.folder).as_posix()}"
        if full or self.fault == BROKEN:
            number = errno.ENOSPC if full else errno.EIO
            raise OSError(number, os.strerror(number), str(path))
        return self._die(path, do, writes)

    def _die(self, path: Path, do: Callable[[], Any], writes: bool) -> None:
        size = path.stat().st_size if path.is_file() else 0
        if self.fault != BEFORE:
            with suppress(OSError):  # to make a folder that is there is refused by any disk
                do()
        if self.fault == TORN and writes and path.is_file():
            os.truncate(path, (size + path.stat().st_size) // 2)
        self._over = True
        assert self.left is not None
        if self.folder.exists():
            shutil.copytree(self.folder, self.left)
        raise Killed

    def opened(
        self, real: Callable[..., Any], path: Any, mode: str, *rest: Any, **more: Any
    ) -> Any:
        """A file; of one that can be written, every write is an operation."""
        if isinstance(path, int) or not set(mode) & set("wax+"):
            return real(path, mode, *rest, **more)
        file = self.meet("open", path, lambda: real(path, mode, *rest, **more))
        return _File(file, Path(os.fspath(path)), self)

    def os_opened(self, real: Callable[..., int], path: Any, *rest: Any, **more: Any) -> int:
        handle = real(path, *rest, **more)
        self._places[handle] = Path(os.fspath(path))
        return handle


class _File:
    """A file whose writes are counted."""

    def __init__(self, file: Any, path: Path, disk: FaultyDisk) -> None:
        self._file, self._path, self._disk = file, path, disk

    def write(self, content: Any) -> Any:
        def do() -> Any:
            written = self._file.write(content)
            self._file.flush()
            return written

        return self._disk.meet("write", self._path, do, writes=True)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def installed(disk: FaultyDisk) -> Iterator[None]:
    """Everything that the package writes with goes through this disk."""
    changes = list(_changes(disk))
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, function in changes:
        setattr(module, name, function)
    try:
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def _changes(disk: FaultyDisk) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Module, name, and what stands there instead."""
    opened, os_opened = io.open, os.open
    yield (
        io,
        "open",
        lambda path, mode="r", *rest, **more: disk.opened(opened, path, mode, *rest, **more),
    )
    yield os, "open", lambda path, *rest, **more: disk.os_opened(os_opened, path, *rest, **more)
    for module, name, place, writes in (
        (os, "write", 0, True),
        (os, "fsync", 0, False),
        (os, "ftruncate", 0, False),
        (journal, "SYNC", 0, False),
        (os, "replace", 1, False),
        (os, "rename", 1, False),
        (os, "unlink", 0, False),
        (os, "mkdir", 0, False),
        (os, "rmdir", 0, False),
        (pq, "write_table", 1, True),
        (torch, "save", 1, True),
        (safetensors.torch, "save_file", 1, True),
    ):
        yield module, name, _counted(disk, name, getattr(module, name), place, writes)


def _counted(
    disk: FaultyDisk, name: str, real: Callable[..., Any], place: int, writes: bool
) -> Callable[..., Any]:
    def operation(*arguments: Any, **more: Any) -> Any:
        return disk.meet(name, arguments[place], lambda: real(*arguments, **more), writes)

    return operation
