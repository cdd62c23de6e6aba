"""`fm.verify`: whether the files of runs, sweeps and studies are those that were written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog.journal import journals, read_journal
from flmarket_sim.eventlog.model_files import check_models
from flmarket_sim.eventlog.reader import check_parts, event_files, event_parts
from flmarket_sim.eventlog.run_files import check_files, known_hashes
from flmarket_sim.eventlog.run_info import FILES, read_info
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.experiments.engine import Progress
from flmarket_sim.experiments.store import read_results
from flmarket_sim.market.checkpoint import read_checkpoint
from flmarket_sim.report import study_folder
from flmarket_sim.storage.sealed_files import HASH_LIST, SEAL, check_file
from flmarket_sim.sweep.stored_shapes import RunResult
from flmarket_sim.sweep.sweep_folder import CONTINUE, read_hashes, read_sweep, read_sweep_json

TASKS = "tasks.jsonl"
Check = Callable[[], object]
Kept = list[Any] | dict[str, Any]  # a result of a study or of a command that was stopped


@dataclass
class Verified:
    """What was found about one directory.

    checked    how many checks were made, about one for each file
    damaged    what does not hold, each naming its file
    unchecked  what could not be checked, and why
    """

    path: Path
    kind: str
    checked: int = 0
    damaged: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        return not self.damaged

    def as_dict(self) -> dict[str, Any]:
        return {"directory": str(self.path), "holds": self.holds} | {
            key: value for key, value in vars(self).items() if key != "path"
        }


def verify(
    *directories: str | os.PathLike[str], progress: Progress | None = None
) -> list[Verified]:
    """Reads every file of runs, sweeps and studies, and compares it with its hash.

    Nothing is raised for a damaged file: `damaged` of the answer names it. A run that a sweep has
    kept has an answer of its own. `progress(done, total)` counts files.
    """
    found = [answer for one in directories for answer in _planned(Path(one))]
    total, done = sum(len(checks) for _, checks in found), 0
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:  # hashing frees Python's lock
        for answer, checks in found:
            for problem in pool.map(_problem, checks):
                done += 1
                answer.checked += 1
                if problem and problem not in answer.damaged:
                    answer.damaged.append(problem)
                if progress is not None:
                    progress(done, total)
    return [answer for answer, _ in found]


def _problem(check: Check) -> str:
    try:
        check()
    except (FlmarketError, OSError) as error:
        return str(error)
    return ""


def _planned(path: Path) -> Iterator[tuple[Verified, list[Check]]]:
    """The directory, and the runs that it keeps, with what there is to check of each."""
    if (path / "sweep.json").exists() or ((path / "runs").is_dir() and (path / TASKS).exists()):
        yield _sweep(path)
        for run in sorted(path.glob("runs/*/run.json")):
            yield _run(run.parent)
    elif (path / "run.json").exists():
        yield _run(path)
    elif (path / "study.json").exists() or (path / TASKS).exists():
        yield _study(path)
    else:
        raise InputError(
            f"{path} is not something to verify: that is the directory of a run (run.json), a "
            "sweep (sweep.json) or a study (study.json)"
        )


def _run(path: Path) -> tuple[Verified, list[Check]]:
    answer = Verified(path, "run")
    try:
        info = read_info(path)
        hashes = known_hashes(path, info)
    except FlmarketError as error:
        answer.damaged.append(str(error))
        return answer, []
    if SEAL not in info:
        answer.unchecked.append("run.json has no hash of itself: an earlier version wrote it")
    if hashes is None:
        answer.unchecked.append("its files have no hashes: only rows and pages are checked")
    there = [part for kind in KINDS for part in event_parts(path, kind)]
    named = [path / name for name in hashes or ()]
    files = sorted({*there, *named})
    checks: list[Check] = [partial(check_files, path, info, [file]) for file in files]
    checks += [partial(_check_kind, path, info, kind) for kind in KINDS]
    checks += check_models(path)
    if FILES not in info:
        noted = journals(path / "events").values()
        checks += [partial(read_journal, journal, strict=True) for journal in noted]
        checks.append(partial(read_checkpoint, path))
    return answer, checks


def _check_kind(run: Path, info: Any, kind: str) -> None:
    parts, later = event_files(run, [kind])[kind]
    check_parts(run, info, kind, parts, later)


def _sweep(path: Path) -> tuple[Verified, list[Check]]:
    answer = Verified(path, "sweep")
    tasks = partial(read_results, path / TASKS, RunResult)
    try:
        hashes = read_hashes(path, read_sweep_json(path))
    except FlmarketError as error:
        answer.damaged.append(str(error))
        return answer, [tasks]
    if hashes is None:
        answer.unchecked.append("it has no hash of a summary: it has not finished, or is old")
        return answer, [tasks]
    checks: list[Check] = [tasks, partial(_check_results, path)]
    return answer, checks + _listed(path, hashes, HASH_LIST, CONTINUE)


def _check_results(path: Path) -> None:
    """Refuses the results of a sweep if its summary has more finished runs than they are."""
    summary = read_sweep(path)
    ended = zip(*(summary.column(name).to_pylist() for name in ("run", "outcome")), strict=True)
    finished = len({run for run, outcome in ended if outcome == "finished"})
    there = len(read_results(path / TASKS, RunResult))
    if there < finished:
        raise InputError(
            f"{path / TASKS} is damaged or lost: it has {there:,} results, and summary.parquet "
            f"{finished:,} finished runs. The same `flmarket sweep` does the others again"
        )


def _study(path: Path) -> tuple[Verified, list[Check]]:
    answer = Verified(path, "study")
    checks: list[Check] = [partial(read_results, path / TASKS, Kept)]
    if not (path / "study.json").exists():
        answer.unchecked.append("it has not finished: only its tasks are checked")
        return answer, checks
    try:
        hashes = study_folder.read_facts(path).get("files")
    except FlmarketError as error:
        answer.damaged.append(str(error))
        return answer, checks
    if not isinstance(hashes, dict):
        answer.unchecked.append("its files have no hashes: an earlier version wrote them")
        hashes = {}
    return answer, checks + _listed(path, hashes, "study.json", study_folder.AGAIN)


def _listed(folder: Path, hashes: Mapping[str, Any], named_in: str, advice: str) -> list[Check]:
    return [
        partial(check_file, folder / name, str(digest), named_in, advice)
        for name, digest in hashes.items()
    ]
