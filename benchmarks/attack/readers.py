"""Everything that reads results, by the kind of result. A reader returns all that it was told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import KINDS
from flmarket_sim.experiments.worker_processes import ThisProcess
from flmarket_sim.report.html import page
from flmarket_sim.report.study_folder import read_study

from .digests import chain, files_of
from .specimens import KILLED, study_scenario, sweep_plan

Reader = Callable[[Path], Any]
TABLES = [*(f"{kind}s" if kind == "round" else kind for kind in KINDS), "owners", "ledger"]
PARTICIPANTS = ("broker", "owner:3")
VIEW = "view"  # a folder beside the subject


def events(run: Path) -> Any:
    return chain({kind: fm.read_events(run, kind) for kind in KINDS})


def models(run: Path) -> Any:
    return list(fm.read_models(run))


def sql_sums(run: Path) -> Any:
    """The number of rows of every table, and the sum of the hashes of its rows, which is exact."""
    each = "SELECT '{0}' AS name, count(*) AS rows, sum(hash(t)) AS hashes FROM {0} t"
    return fm.sql(run, " UNION ALL ".join(each.format(table) for table in TABLES) + " ORDER BY 1")


def sql_links(run: Path) -> Any:
    """A hash of each event, in order: of an unfinished log, those of its beginning."""
    each = "SELECT seq, '{0}' AS name, hash(t) AS hashed FROM {0} t"
    events = [each.format(table) for table in TABLES[:-2]]
    rows = fm.sql(run, " UNION ALL ".join(events) + " ORDER BY 1").to_pylist()
    return tuple((row["seq"] == place, *row.values()) for place, row in enumerate(rows, 1))


def view(run: Path) -> Any:
    out, seen = run.with_name(VIEW), {}
    for who in PARTICIPANTS:
        shutil.rmtree(out, ignore_errors=True)
        fm.write_view(run, who, out)
        seen[who] = files_of(out)
    return seen


def report(folder: Path) -> Any:
    return page.make([folder])


def resume(run: Path) -> Any:
    """Everything that a run holds at its end."""
    done = fm.resume(run)
    return [
        events(run),
        fm.read_owners(run),
        fm.read_ledger(run),
        models(run),
        done.summary()["buyers"],
    ]


def sweep_continue(folder: Path) -> Any:
    return fm.run_sweep(sweep_plan(), folder, crew=ThisProcess())


def study_continue(folder: Path) -> Any:
    finding = fm.study(study_scenario(), folder, progress=lambda done, total: None).finding
    return [finding.rows, finding.sentences]


def evaluate(folder: Path) -> Any:
    name = folder.name  # a specimen of weights has the name of its mechanism
    result = fm.evaluate(
        f"{name}@{folder / 'own.safetensors'}",
        study_scenario(),
        budgets=0.7,
        profiles=4,
        progress=lambda done, total: None,
    )
    return [list(result.errors.values()), result.rows]


def verify(folder: Path) -> Any:
    """What `flmarket verify` finds; it tells of damage and raises nothing."""
    found = fm.verify(folder)  # type: ignore[attr-defined]
    if damaged := [problem for answer in found for problem in answer.damaged]:
        raise InputError("; ".join(damaged))
    return "whole"


READ_ONLY: dict[str, Reader] = {
    "run.json": fm.read_run,
    "events": events,
    "owners": fm.read_owners,
    "ledger": fm.read_ledger,
    "models": models,
    "summary": lambda run: fm.Run(run).summary(),
    "sql": sql_sums,
    "report": report,
    "view": view,
}
READERS: dict[str, dict[str, Reader]] = {  # those that write come last
    "run": READ_ONLY | {"resume": resume},
    KILLED: {
        "events": events,
        "owners": fm.read_owners,
        "summary": lambda run: fm.Run(run).summary(),
        "sql": sql_links,
        "report": report,
        "view": view,
        "resume": resume,
    },
    "sweep": {"read_sweep": fm.read_sweep, "report": report, "continue": sweep_continue},
    "stopped sweep": {"continue": sweep_continue},
    "study": {"read_study": read_study, "report": report},
    "stopped study": {"continue": study_continue},
    "weights": {"evaluate": evaluate},
}


def readers_of(kind: str) -> dict[str, Reader]:
    """The readers of a kind of result; `verify` is the first where it exists."""
    known = {"verify": verify} if hasattr(fm, "verify") else {}
    return known | READERS[kind] if kind in ("run", "sweep", "study") else READERS[kind]
