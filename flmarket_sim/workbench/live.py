"""A result while it is written, as a stream of events for the browser (server-sent events)."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any

import anyio

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog import read_run
from flmarket_sim.eventlog.reader import read_scenario
from flmarket_sim.learning.constant_guess import constant_guess
from flmarket_sim.learning.dataset import load_data
from flmarket_sim.report.html.parts import evenly
from flmarket_sim.storage.untrusted_files import read_json
from flmarket_sim.workbench.jobs import Jobs
from flmarket_sim.workbench.result_facts import outcome_of
from flmarket_sim.workbench.run_tail import Row, RunTail

EVERY = 0.5  # seconds between two looks; a run writes its journal about once a second
POINTS = 2_000  # rounds that are sent at once
TASKS = "tasks.jsonl"


class Watch:
    """What one browser has seen of a result, and what is new for it."""

    def __init__(self, jobs: Jobs, name: str) -> None:
        self.jobs, self.name, self.path = jobs, name, jobs.folder / name
        self._tail = RunTail(self.path)
        self._total: int | None = None
        self._sums = {"rounds": 0, "spent": 0.0, "budget": 0.0, "privacy_sold": 0.0, "delivered": 0}
        self._last: Row = {}
        self._guess: float | None = None
        self._before: Row = {}

    def look(self) -> tuple[Row | None, bool]:
        """The news (None if there are none), and whether the result has ended."""
        alive = self.jobs.running(self.name)
        outcome = outcome_of(self.path, alive)
        news: Row = {"outcome": outcome, "running": outcome == "running"}
        if (self.path / "run.json").exists():
            news |= self._run()
        else:
            news |= self._tasks()
        if outcome == "failed to start":
            news["output"] = self.jobs.output(self.name)
        news["ours"] = alive
        same = {k: v for k, v in news.items() if k not in ("rounds", "messages")} == self._before
        self._before = {k: v for k, v in news.items() if k not in ("rounds", "messages")}
        empty = same and not news.get("rounds") and not news.get("messages")
        return (None if empty else news), outcome != "running"

    def _run(self) -> Row:
        if self._total is None:
            scenario = read_run(self.path).get("scenario", {})
            self._total = scenario.get("rounds", 0) * max(1, len(scenario.get("buyers") or ()))
        fresh = self._tail.fresh()
        if self._guess is None and any(row.get("accuracy") is not None for row in fresh.rounds):
            self._guess = _constant_guess(str(self.path))
        for row in fresh.rounds:
            self._sums["rounds"] += 1
            for key in ("spent", "budget", "privacy_sold", "delivered"):
                self._sums[key] += row.get(key) or 0
            self._last |= {
                key: row[key]
                for key in ("accuracy", "balanced_accuracy", "loss")
                if row.get(key) is not None
            }
        return {
            "rounds": _plain(evenly(fresh.rounds, POINTS)),
            "messages": _plain(fresh.messages),
            "totals": _plain(self._sums | self._last | {"of": self._total}),
            "events": fresh.events,
            "constant_guess": self._guess,
        }

    def _tasks(self) -> Row:
        """How many tasks of a sweep or study are done, and of how many."""
        done = 0
        try:
            with (self.path / TASKS).open("rb") as file:
                done = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(2**20), b""))
        except OSError:
            pass
        total = None
        try:
            total = read_json(self.path / "sweep.json").get("runs")
        except (OSError, InputError):
            pass
        return {"tasks": {"done": done, "of": total}}


async def stream(jobs: Jobs, name: str) -> AsyncIterator[str]:
    """Server-sent events about a result until it has ended."""
    watch = Watch(jobs, name)
    while True:
        news, ended = await anyio.to_thread.run_sync(watch.look)
        if news is not None:
            yield f"data: {json.dumps(news, allow_nan=False)}\n\n"
        if ended:
            yield "event: end\ndata: {}\n\n"
            return
        await anyio.sleep(EVERY)


@lru_cache(maxsize=64)
def _constant_guess(run: str) -> float | None:
    """What the constant guess scores on the data of a run; None if these cannot be loaded here."""
    try:
        return constant_guess(load_data(read_scenario(run))).accuracy
    except (FlmarketError, OSError):
        return None


def _plain(value: Any) -> Any:
    """Values for JSON: seven digits, and null for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value
