"""The list of results in a folder. A large folder is listed at once and completed step by step.

Facts are kept for as long as the file that they come from does not change. Totals of runs need the
table of rounds; a call spends a bounded time on them and says how many are missing.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from flmarket_sim.workbench.jobs import Jobs
from flmarket_sim.workbench.result_facts import (
    Facts,
    facts_of,
    kind_of,
    last_write,
    marked_file,
    outcome_of,
    run_outcome,
    totals_of,
)

SPEND = 0.15  # seconds of a call on totals
MOST = 20_000  # results in a folder
Stamp = tuple[int, int]


class FolderIndex:
    """The results of one folder, with what was read of them before."""

    def __init__(self, folder: Path, jobs: Jobs) -> None:
        self.folder, self.jobs = folder, jobs
        self._facts: dict[str, tuple[Stamp, Facts]] = {}
        self._totals: dict[str, tuple[object, Facts]] = {}
        self._lock = threading.Lock()

    def entries(self, spend: float = SPEND) -> Facts:
        """All results, newest first, and how many runs still lack their totals."""
        with self._lock:
            rows = self._rows()
            missing = self._complete(rows, spend)
        return {"folder": str(self.folder), "entries": rows, "missing": missing}

    def _rows(self) -> list[Facts]:
        started = {job.name: job for job in self.jobs.all()}
        rows = []
        for name, path, kind in self._found():
            facts, when = self._known(name, path, kind)
            alive = name in started and self.jobs.running(name)
            if alive:
                outcome = "running"
            elif kind == "run":
                outcome = run_outcome(path, str(facts.get("stored", "failed")))
            else:
                outcome = outcome_of(path, alive)
            rows.append({"name": name, "when": when, "outcome": outcome, "ours": alive} | facts)
        there = {row["name"] for row in rows}
        for name, job in started.items():
            if name not in there:
                alive = self.jobs.running(name)
                row = {"name": name, "kind": job.what, "when": job.began, "ours": alive}
                outcome = "running" if alive else "failed to start"
                rows.append(row | {"outcome": outcome, "scenario": "", "auction": "", "of": None})
        return sorted(rows, key=lambda row: (-row["when"], row["name"]))

    def _found(self) -> list[tuple[str, Path, str]]:
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                path = Path(entry.path)
                if (kind := kind_of(path)) is not None:
                    found.append((entry.name, path, kind))
                if len(found) >= MOST:
                    break
        return found

    def _known(self, name: str, path: Path, kind: str) -> tuple[Facts, float]:
        try:
            stat = marked_file(path, kind).stat()
        except OSError:
            return {"kind": kind, "problem": "cannot be read", "scenario": "", "of": None}, 0.0
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._facts.get(name)
        if known is None or known[0] != stamp:
            known = self._facts[name] = (stamp, facts_of(path, kind))
        return known[1], stat.st_mtime

    def _complete(self, rows: list[Facts], spend: float) -> int:
        """Adds totals to runs for so many seconds. Returns how many are left without."""
        began, missing = time.monotonic(), 0
        for row in rows:
            if row["kind"] != "run" or row.get("problem") or "stored" not in row:
                continue
            name, path = row["name"], self.folder / row["name"]
            finished = row["stored"] == "finished"
            stamp: object = self._facts[name][0] if finished else last_write(path)
            known = self._totals.get(name)
            if known is None or known[0] != stamp:
                if time.monotonic() - began > spend:
                    missing += 1
                    continue
                known = self._totals[name] = (stamp, totals_of(path, finished))
            row |= known[1]
        return missing
