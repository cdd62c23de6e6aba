"""Results of a command that has no directory of its own, kept until the command has printed them.

The file is runs/NAME-HASH/tasks.jsonl, with a hash of the keys of all tasks. It appears with the
first result. A command that was stopped continues from it when it is given again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, Interrupted
from flmarket_sim.experiments.store import FileStore, MemoryStore, Store
from flmarket_sim.experiments.task import Task
from flmarket_sim.storage.result_folders import result_folder

Say = Callable[[str], None]


@contextmanager
def scratch_store(name: str, tasks: Sequence[Task], say: Say, kind: Any = Any) -> Iterator[Store]:
    """A store for a block that performs the tasks and prints what they give.

    The file goes when the block ends normally, and stays when an exception ends it. `say` tells the
    user in one line that the command continues, or that nothing can be kept. `kind` is the type of
    a result.
    """
    keys = hashlib.sha256("\n".join(sorted({task.key for task in tasks})).encode()).hexdigest()
    path = result_folder(name, keys) / "tasks.jsonl"
    with ExitStack() as resources:
        store = _Scratch(path, resources, say, kind)
        if path.exists():
            store.open()
        if done := sum(task.key in store for task in tasks):
            say(f"continuing from {path}: {done:,} of {len(tasks):,} tasks are done")
        try:
            yield store
        except KeyboardInterrupt:
            if not store.is_on_disk:
                raise Interrupted(
                    "interrupted; nothing is kept, and the same command starts again"
                ) from None
            raise Interrupted(
                f"interrupted; finished tasks are in {path}, and the same command continues there"
            ) from None
        if store.is_on_disk:
            path.unlink(missing_ok=True)
    for folder in path.parents[:2]:
        with suppress(OSError):
            folder.rmdir()  # succeeds only where it is empty


class _Scratch:
    """A FileStore from its first result on, or a MemoryStore where the file cannot be opened."""

    def __init__(self, path: Path, resources: ExitStack, say: Say, kind: Any) -> None:
        self.path, self.resources, self.say, self.kind = path, resources, say, kind
        self.opened = False
        self.store: Store = MemoryStore()

    @property
    def is_on_disk(self) -> bool:
        return isinstance(self.store, FileStore)

    def open(self) -> None:
        self.opened = True
        try:
            self.store = self.resources.enter_context(FileStore(self.path, self.kind))
        except FlmarketError as error:
            self.say(f"results are not kept for a later call: {error}")

    def __contains__(self, key: object) -> bool:
        return key in self.store

    def __getitem__(self, key: str) -> Any:
        return self.store[key]

    def add(self, key: str, result: Any) -> None:
        if not self.opened:
            self.open()
        self.store.add(key, result)
