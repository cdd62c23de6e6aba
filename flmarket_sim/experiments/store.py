"""Results of finished tasks on disk, so that a stopped experiment continues where it was.

A store is one file with a line for each result: key, checksum, and the result as JSON. A line that
a kill has cut off is dropped when the store is opened again. One process writes at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pydantic

from flmarket_sim.errors import InputError
from flmarket_sim.storage.atomic_files import append_to, disk_error
from flmarket_sim.storage.result_folders import alone
from flmarket_sim.storage.untrusted_files import first_problem

SYNC_SECONDS = 2.0  # a power cut costs at most the results of this time
ADVICE = "Finished results are kept; free some space, and the same command continues from there"


class Store(Protocol):
    """Keeps the results of tasks by their keys."""

    def __contains__(self, key: object) -> bool: ...

    def __getitem__(self, key: str) -> Any: ...

    def add(self, key: str, result: Any) -> None:
        """Keeps a result that JSON can express."""
        ...


class MemoryStore(dict[str, Any]):
    """Keeps results for as long as this process lives."""

    def add(self, key: str, result: Any) -> None:
        self[key] = json.loads(json.dumps(result))


class FileStore:
    """Keeps results in the file `path`. It is a context manager: the lock ends with the block.

    `kind` is the type of a result. A line of another type is refused as a damaged one is.

    Every result is read back from its JSON, so an experiment that continues sees the same values as
    one that was never stopped.
    """

    def __init__(self, path: Path, kind: Any = Any) -> None:
        self.path, self.kind = path, kind
        self._results: dict[str, Any] = {}
        self._opened = False
        self._resources = ExitStack()
        self._synced = time.monotonic()

    def __enter__(self) -> FileStore:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path.parent} cannot be made: {error}") from None
        lock = self.path.with_name(f".{self.path.name}.lock")
        refusal = f"another process keeps its results in {self.path}; wait until it has ended"
        self._resources.enter_context(alone(lock, refusal))
        self._resources.callback(self._delete_if_empty)
        try:
            self._open()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            self._sync()
        except OSError as failure:
            if kind is None:  # otherwise another error ends the block already
                raise disk_error(self.path, failure, ADVICE) from failure
        finally:
            self._resources.close()

    def __contains__(self, key: object) -> bool:
        return key in self._results

    def __getitem__(self, key: str) -> Any:
        return self._results[key]

    def add(self, key: str, result: Any) -> None:
        text = json.dumps(result)
        try:
            self._file.write(f"{key} {_checksum(key, text)} {text}\n".encode())
            self._results[key] = json.loads(text)  # before the sync: Ctrl-C may end that one
            if time.monotonic() - self._synced > SYNC_SECONDS:
                self._sync()
        except OSError as error:
            raise disk_error(self.path, error, ADVICE) from error

    def forget(self, key: str) -> None:
        """Drops a result until its task is done again: of two lines for a key, the last counts."""
        del self._results[key]

    def delete(self) -> None:
        """Removes the file once its results are safe elsewhere."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise disk_error(self.path, error, ADVICE) from error

    def _delete_if_empty(self) -> None:
        """Called when the file is closed and the lock still held: nobody else writes into it."""
        if self._opened and not self._results:
            self.delete()

    def _open(self) -> None:
        self._results, end = _read(self.path, self.kind)
        try:
            self._file = self._resources.enter_context(append_to(self.path))
            self._file.truncate(end)
            self._opened = True
        except OSError as error:
            raise disk_error(self.path, error, ADVICE) from error

    def _sync(self) -> None:
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()


def read_results(path: Path, kind: Any = Any) -> dict[str, Any]:
    """The results that a store holds so far; the store may be open elsewhere."""
    return _read(path, kind)[0]


def _read(path: Path, kind: Any) -> tuple[dict[str, Any], int]:
    """All results of a store, and where its last whole line ends."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}, 0
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    end = content.rfind(b"\n") + 1
    results: dict[str, Any] = {}
    shape = pydantic.TypeAdapter(kind)
    if _is_whole(content[end:-1]):  # a kill leaves a beginning, and nothing after a whole line
        raise InputError(
            f"{path} is damaged: its last line has another end; delete that line, and its task "
            "is done again"
        )
    for number, line in enumerate(content[:end].splitlines(), 1):
        try:
            key, checksum, text = line.decode().split(" ", 2)
            if checksum != _checksum(key, text):
                raise ValueError("its checksum is wrong")
            results[key] = json.loads(text)
            shape.validate_python(results[key])
        except (ValueError, RecursionError) as error:
            reason = (
                first_problem(error) if isinstance(error, pydantic.ValidationError) else str(error)
            )
            raise InputError(
                f"{path} is damaged in line {number} ({reason}); delete that line, and its task "
                "is done again"
            ) from None
    return results, end


def _is_whole(line: bytes) -> bool:
    """Whether a line has everything but its end."""
    try:
        key, checksum, text = line.decode().split(" ", 2)
        return checksum == _checksum(key, text)
    except ValueError:
        return False


def _checksum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()[:16]
