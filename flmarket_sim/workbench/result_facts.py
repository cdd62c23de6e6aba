"""The facts of one result for the list: kind, outcome, scenario, rounds, accuracy, money, when."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.reader import read_events
from flmarket_sim.storage.sealed_files import read_sealed
from flmarket_sim.workbench.run_tail import RunTail

LARGEST = 8_000_000  # bytes of a run.json that is read for the list
QUIET = 15.0  # seconds without a write after which a run of another program counts as stopped
MARKS = {"sweep": "sweep.json", "study": "study.json", "run": "run.json"}
PROBE = b"flmarket_probe"
Facts = dict[str, Any]


def kind_of(path: Path) -> str | None:
    """What a path is: run, sweep, study, probe, or nothing of ours."""
    if path.is_file():
        return "probe" if path.suffix == ".parquet" else None
    for kind, mark in MARKS.items():
        if (path / mark).exists():
            return kind
    return "study" if (path / "tasks.jsonl").exists() else None


def marked_file(path: Path, kind: str) -> Path:
    """The file whose change means that the facts have changed."""
    if kind == "probe":
        return path
    mark = path / MARKS[kind]
    return mark if mark.exists() else path / "tasks.jsonl"


def facts_of(path: Path, kind: str) -> Facts:
    """The facts that one small file tells."""
    facts: Facts = {"kind": kind, "scenario": "", "auction": "", "of": None}
    try:
        if kind == "probe":
            return facts | _probe_facts(path)
        mark = marked_file(path, kind)
        if mark.name == "tasks.jsonl" or mark.stat().st_size > LARGEST:
            return facts
        content = read_sealed(mark, "")
    except (OSError, InputError):
        return facts | {"problem": "cannot be read"}
    scenario = content.get("scenario")
    scenario = scenario if isinstance(scenario, dict) else {}
    buyers = scenario.get("buyers") or [{}]
    tables = [buyer.get("auction") or scenario.get("auction") or {} for buyer in buyers]
    names = dict.fromkeys(str(t.get("name", "")) if isinstance(t, dict) else str(t) for t in tables)
    total = scenario.get("rounds")
    facts |= {
        "scenario": str(scenario.get("name", content.get("name", ""))),
        "auction": ", ".join(name for name in names if name),
    }
    if kind == "run":
        log = content.get("log")
        facts |= {
            "of": total * len(buyers) if isinstance(total, int) else None,
            "stored": content.get("outcome"),
            "error": str(content.get("error", ""))[:500],
            "events": log.get("events") if isinstance(log, dict) else None,
            "seconds": content.get("wall_seconds"),
            "view": content.get("view"),
        }
    elif kind == "sweep":
        facts["of"] = content.get("runs")
    return facts


def outcome_of(path: Path, alive: bool) -> str:
    """running, finished, interrupted, failed, stopped, or failed to start."""
    kind = kind_of(path) if path.exists() else None
    if alive:
        return "running"
    if kind is None:
        return "failed to start"
    if kind == "probe":
        return "finished"
    if kind == "study":
        return "finished" if (path / "study.json").exists() else "stopped"
    if kind == "sweep":
        return "finished" if (path / "summary.parquet").exists() else "stopped"
    return run_outcome(path, str(_stored(path)))


def run_outcome(path: Path, stored: str) -> str:
    """The outcome of a run that no job of ours is writing.

    A killed run says `running` for ever; one that another program writes changes its files.
    """
    if stored != "running":
        return stored
    return "running" if time.time() - last_write(path) < QUIET else "stopped"


def last_write(path: Path) -> float:
    """When a run last wrote something."""
    newest = 0.0
    for file in (path / "run.json", path / "checkpoint.npz", *path.glob("events/journal-*")):
        try:
            newest = max(newest, file.stat().st_mtime)
        except OSError:
            continue
    return newest


def totals_of(path: Path, finished: bool) -> Facts:
    """Rounds, money and the last accuracy of a run, from its table of rounds."""
    if not finished:
        rows = RunTail(path).fresh().rounds
        measured = [row["accuracy"] for row in rows if row.get("accuracy") is not None]
        return _totals(len(rows), math.fsum(row["spent"] for row in rows), measured[-1:])
    try:
        table = read_events(path, "round")
        spent = pc.sum(table.column("spent")).as_py() or 0.0
        measured = table.column("accuracy").drop_null()
    except (InputError, KeyError):
        return {"problem": "cannot be read"}
    return _totals(len(table), spent, [measured[-1].as_py()] if len(measured) else [])


def _totals(rounds: int, spent: float, accuracy: list[float]) -> Facts:
    return {"rounds": rounds, "spent": spent, "accuracy": accuracy[0] if accuracy else None}


def _stored(path: Path) -> Any:
    try:
        return read_sealed(path / "run.json", "").get("outcome")
    except (OSError, InputError):
        return "failed"


def _probe_facts(path: Path) -> Facts:
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException):
        return {"problem": "cannot be read"}
    if PROBE not in metadata:
        return {"problem": "is not the file of a probe"}
    try:
        facts = json.loads(metadata.get(b"facts", b"{}"))
    except ValueError:
        return {"problem": "cannot be read"}
    return {key: str(facts.get(key, "")) for key in ("scenario", "auction")}
