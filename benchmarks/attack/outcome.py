"""What an attack found: a table, failures with the command that repeats each alone, a verdict."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from flmarket_sim.tables.table_text import as_text

SHOWN = 20
Progress = Callable[[int, int, int], None]  # trials done, trials in all, failures so far


@dataclass(frozen=True)
class Failure:
    """What went wrong in a trial. Failures of one `sort` are alike; one of them is printed."""

    index: int
    sort: str
    what: str
    again: str


@dataclass
class Outcome:
    """The result of one attack."""

    attack: str
    trials: int = 0
    seconds: float = 0.0
    rows: list[dict[str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def as_text(self) -> str:
        parts = [as_text(self.rows)] if self.rows else []
        return "\n\n".join([*parts, *self._failures(), self.verdict()])

    def as_json(self) -> str:
        return json.dumps(asdict(self) | {"verdict": self.verdict()}, indent=2)

    def verdict(self) -> str:
        done = f"{self.attack}: {self.trials:,} trials in {self.seconds:,.0f} s"
        if not self.failures:
            return f"{done}, nothing bad."
        sorts = len({failure.sort for failure in self.failures})
        return f"{done}, {len(self.failures):,} BAD, of {sorts} sorts."

    def _failures(self) -> list[str]:
        alike: dict[str, list[Failure]] = {}
        for failure in self.failures:
            alike.setdefault(failure.sort, []).append(failure)
        often = sorted(alike.values(), key=len, reverse=True)
        told = [
            f"{len(some)} x {some[0].sort}\n  {some[0].what}\n  again: {some[0].again}"
            for some in often[:SHOWN]
        ]
        rest = len(often) - SHOWN
        return told + ([f"... and {rest} other sorts (--json has all)"] if rest > 0 else [])


def shown_progress(attack: str) -> Progress:
    """Writes one line to stderr, over and over; to a file, a line for each tenth."""
    tenth = -1

    def show(done: int, total: int, failures: int) -> None:
        nonlocal tenth
        line = f"{attack}: {done:,} of {total:,} trials, {failures:,} bad"
        if sys.stderr.isatty():
            print(f"\r{line}", end="" if done < total else "\n", file=sys.stderr, flush=True)
        elif 10 * done // max(total, 1) != tenth:
            tenth = 10 * done // max(total, 1)
            print(line, file=sys.stderr, flush=True)

    return show
