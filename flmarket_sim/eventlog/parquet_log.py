"""A log in Parquet: the same events give the same bytes.

About every million events, each kind of event writes a part. A part is complete when it appears,
and its end depends on the events alone. The journal has the events that are in no part yet, all but
those of about the last second. It depends on the clock, and a finished run has none.
"""

from __future__ import annotations

import filecmp
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog.hashes import KindHash
from flmarket_sim.eventlog.journal import Journal, read_journal
from flmarket_sim.eventlog.log import event_count
from flmarket_sim.eventlog.pending_events import Block, PendingEvents, PendingTable
from flmarket_sim.eventlog.record import Integers, Record
from flmarket_sim.eventlog.run_files import RunFiles
from flmarket_sim.eventlog.schema import KINDS, arrow_schema
from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.storage.atomic_files import disk_error, sync, write_table, write_whole
from flmarket_sim.storage.sealed_files import HASH_LIST
from flmarket_sim.storage.untrusted_files import read_parquet

EVENTS_PER_PART = 2**20  # of all kinds together
JOURNAL_SECONDS = 1.0
WRITERS = 8  # threads: Arrow encodes without Python's lock, and disks work in parallel
ORDERED = ("seq", "time")  # columns for which a dictionary is never worthwhile


class ParquetLog:
    """The event log of one run, which is called `of`. `seq` is the number of the last event.

    `part` is the number of the next part, `flushed` the last event in earlier parts, and `safe` the
    last event that is on disk.
    """

    def __init__(
        self,
        folder: Path,
        buyers: tuple[str, ...],
        behaviours: tuple[str, ...] = (),
        families: tuple[str, ...] = FAMILIES,
        of: str = "",
        cheats: tuple[str, ...] = (),
    ) -> None:
        self.folder = folder
        self.seq = self.flushed = self.safe = self.part = 0
        names = (buyers, behaviours, families, cheats)
        self.pending = {kind: PendingEvents(kind, *names) for kind in KINDS}
        self.hashes = {kind: KindHash(pending.columns) for kind, pending in self.pending.items()}
        self.journal = Journal(folder)
        self.files = RunFiles(folder.parent, of)
        self.needed: int | None = None  # the journal that the checkpoint needs
        self._noted = time.monotonic()

    def write(
        self,
        record: Record,
        *,
        time: float,
        round: int,
        buyer: int,
        sender: Integers,
        receiver: Integers,
    ) -> None:
        """An event for each sender or receiver; see `Log`."""
        cells = [round, buyer, sender, receiver, *record.cells()]
        count, pending = event_count(sender, receiver), self.pending[record.kind]
        if count is None:
            self.seq += 1
            pending.singles.append([self.seq, time, *cells])
        elif count:
            seq = np.arange(self.seq + 1, self.seq + count + 1, dtype=np.uint64)
            pending.blocks.append(Block(count, [seq, time, *cells]))
            self.seq += count

    def table(
        self, record: Record, *, round: int, buyer: int, sender: Integers, receiver: Integers
    ) -> PendingTable:
        """Events that may happen; see `Log`."""
        cells = [round, buyer, sender, receiver, *record.cells()]
        return PendingTable(self, self.pending[record.kind], cells)

    @property
    def due(self) -> bool:
        """Whether `flush` has anything to do."""
        return (
            self.seq - self.flushed >= EVENTS_PER_PART
            or time.monotonic() - self._noted >= JOURNAL_SECONDS
        )

    def flush(self) -> None:
        """At the end of a round: writes parts once there are enough events, else the journal at
        times."""
        if self.seq - self.flushed >= EVENTS_PER_PART:
            self._write_parts()
        elif self.due:
            self.note()

    def note(self) -> None:
        """Writes everything logged so far to the journal."""
        for pending in self.pending.values():
            pending.gather()
        everything = {
            kind: pending.batches for kind, pending in self.pending.items() if pending.batches
        }
        fresh = {
            kind: more
            for kind, batches in everything.items()
            if (more := batches[self.pending[kind].noted :])
        }
        if everything:
            try:
                self.journal.append(self.part, self.seq, fresh, everything)
            except OSError as error:
                raise disk_error(self.folder, error, ADVICE) from error
            for pending in self.pending.values():
                pending.noted = len(pending.batches)
        self.safe, self._noted = self.seq, time.monotonic()

    def close(self) -> None:
        """Writes all pending events, which completes the log. A journal that the checkpoint needs
        stays."""
        if self.seq > self.flushed:
            self._write_parts()
        self.journal.close()

    def stand_on(self, part: int) -> None:
        """Keeps the journal of this part for a checkpoint, and deletes older ones."""
        self.needed = part
        self.journal.remove(range(part))

    def restore(self, part: int, flushed: int, seq: int) -> None:
        """Takes the log back to its state after event `seq`: parts up to `part`, a journal."""
        existing = {
            path.name for kind in KINDS for path in self.folder.glob(f"kind={kind}/part-*.parquet")
        }
        if part > len(existing):
            raise ValueError(f"it needs {part:,} parts, and there are {len(existing)}")
        for number in range(part):
            for kind, hashed in self.hashes.items():
                if (path := self._path(kind, number)).exists():
                    hashed.update(_columns(path, kind))
                    if not self.files.same(path):
                        raise FlmarketError(
                            f"{path} is damaged: {HASH_LIST} has another hash of it"
                        )
        if seq > flushed:
            path = self.folder / f"journal-{part:05d}"
            content = read_journal(path, seq) if path.exists() else None
            if content is None or content.seq != seq:
                raise FlmarketError(
                    f"{path} is damaged or missing: the events up to {seq:,} should be in it"
                )
            for kind, batches in content.batches.items():
                self.pending[kind].batches = batches
        self.part, self.flushed, self.needed = part, flushed, part
        self.seq = self.safe = seq

    def digests(self) -> dict[str, str]:
        """A hash of the events of each kind that are in parts."""
        return {kind: hashed.hexdigest() for kind, hashed in self.hashes.items()}

    def summary(self) -> dict[str, Any]:
        """The number of events of each kind, and hashes of their values (see hashes.py)."""
        total = hashlib.sha256()
        kinds = {}
        for kind, hashed in self.hashes.items():
            digest = hashed.hexdigest()
            total.update(f"{kind}:{digest};".encode())
            kinds[kind] = {"rows": hashed.rows, "sha256": digest}
        return {
            "events": sum(hashed.rows for hashed in self.hashes.values()),
            "sha256": total.hexdigest(),
            "kinds": kinds,
        }

    def _write_parts(self) -> None:
        """Writes a part of every kind that has events. The journal has them first, in case of a
        kill."""
        self.note()
        try:
            with ThreadPoolExecutor(max_workers=WRITERS) as pool:
                for writing in [pool.submit(self._write_part, kind) for kind in KINDS]:
                    writing.result()
            for folder in (self.folder, self.folder.parent):  # the names of new directories
                sync(folder)
            self.files.save()
        except OSError as error:
            raise disk_error(self.folder, error, ADVICE) from error
        written, self.part, self.flushed = self.part, self.part + 1, self.seq
        self.journal.remove([number for number in range(written + 1) if number != self.needed])

    def _write_part(self, kind: str) -> None:
        pending, path = self.pending[kind], self._path(kind, self.part)
        table = pending.whole()
        if table is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)

        def write(fresh: Path) -> None:
            write_table(
                table,
                fresh,
                row_group_size=len(table),
                use_dictionary=[name for name in table.column_names if name not in ORDERED],
                column_encoding={"seq": "DELTA_BINARY_PACKED"},
                max_rows_per_page=len(table),  # pages end by their size
            )
            if path.exists() and not filecmp.cmp(fresh, path, shallow=False):
                raise FlmarketError(f"{path} is not what this run writes there: {OTHERWISE}")
            self.files.add(path, fresh)

        write_whole(path, write)
        self.hashes[kind].update([column.chunk(0) for column in table.columns])
        pending.batches, pending.noted = [], 0

    def _path(self, kind: str, number: int) -> Path:
        return self.folder / f"kind={kind}" / f"part-{number:05d}.parquet"


ADVICE = (
    "What is there stays readable; free some space, and `flmarket resume` on the run's directory "
    "continues the run"
)
OTHERWISE = (
    "the file is damaged, or the data, the plug-ins or the kind of CPU have changed since the run "
    "began. If it is damaged, delete it and resume again: the run writes it anew"
)


def _columns(path: Path, kind: str) -> list[pa.Array]:
    """The columns of a part, each in one piece."""
    table = read_parquet(path, arrow_schema(kind, ()), known_only=True)
    return [
        column.chunk(0) if column.num_chunks == 1 else column.unify_dictionaries().combine_chunks()
        for column in table.columns
    ]
