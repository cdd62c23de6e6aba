"""`faults`: one fault of the disk at some file operation of a run, a sweep, a study or a training.

Afterwards what was written is a beginning of the whole or is refused by name, and the same command
(or `resume`) goes on to the result of an undisturbed one. `python -m benchmarks.kills` kills real
processes at random moments instead.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.errors import FlmarketError
from flmarket_sim.experiments.worker_processes import ThisProcess
from flmarket_sim.scenario.scenario_file import build_scenario

from . import readers
from .digests import digest, files_of
from .faulty_disk import FAULTS, KILLS, FaultyDisk, Killed, installed
from .outcome import Failure, Outcome, Progress
from .specimens import SMALL, often, study_scenario, sweep_plan
from .watched import Lost, perform

MARKET = {"data": {"name": "synthetic", "records": 600}, "owners": {"count": 20}}


class Work(NamedTuple):
    """`start` also goes on with what was stopped; `result` is what it ends with.

    `into_a_file` says that the folder is the user's own, and there before.
    """

    start: Callable[[Path], object]
    result: Callable[[Path], Any]
    read: Callable[[Path], Any] | None = None
    into_a_file: bool = False


def run_or_resume(folder: Path) -> None:
    with often():
        if (folder / "run.json").exists():
            fm.resume(folder)
        else:
            fm.run("quickstart", folder, log__models="evaluated", **SMALL)


def run_holds(folder: Path) -> Any:
    return [
        readers.events(folder),
        fm.read_owners(folder),
        fm.read_ledger(folder),
        readers.models(folder),
    ]


def sweep(folder: Path) -> None:
    fm.run_sweep(sweep_plan(), folder, crew=ThisProcess())


def study(folder: Path) -> None:
    if not (folder / "study.json").exists():
        fm.study(study_scenario(), folder, progress=lambda done, total: None)


def train(folder: Path) -> None:
    """A few steps of seq-price, into a file of the folder."""
    settings = training.preset("fast", "seq-price")
    few = {"markets": 8, "steps": 4, "steps_per_epoch": 2}
    known = {key: value for key, value in few.items() if hasattr(settings, key)}
    if not (folder / "own.metrics.parquet").exists() or not (folder / "own.safetensors").exists():
        out, chosen = folder / "own.safetensors", replace(settings, **known)
        training.train("seq-price", build_scenario(MARKET), "opt-aggr", out, chosen)


def result_files(folder: Path) -> dict[str, str]:
    """The files of a result, without what a kill at the very end may leave beside them."""
    return {
        name: hashed
        for name, hashed in files_of(folder).items()
        if not name.startswith(".") and not name.endswith((".training", "tasks.jsonl"))
    }


WORKS: dict[str, Work] = {
    "run": Work(run_or_resume, run_holds, readers.events),
    "sweep": Work(sweep, fm.read_sweep, fm.read_sweep),
    "study": Work(study, result_files),
    "training": Work(train, result_files, into_a_file=True),
}


class Told(NamedTuple):
    """One fault: where, and what was wrong afterwards ('' if nothing)."""

    work: str
    fault: str
    where: str
    wrong: str


class FaultTrials:
    """Faults in works. Trial number i of a seed is always the same."""

    def __init__(self, scratch: Path, seed: int, names: tuple[str, ...] = ()) -> None:
        self.seed, self.scratch = seed, Path(tempfile.mkdtemp(dir=scratch))
        self.names = names or tuple(WORKS)
        self._known: dict[str, tuple[int, Any]] = {}

    def undisturbed(self, name: str) -> tuple[int, Any]:
        """The number of file operations of a work, and its result."""
        if name not in self._known:
            folder = self._empty("subject", WORKS[name].into_a_file)
            disk = FaultyDisk(folder)
            with installed(disk):
                WORKS[name].start(folder)
            self._known[name] = disk.count, WORKS[name].result(folder)
        return self._known[name]

    def __call__(self, index: int) -> Told:
        chance = random.Random(f"{self.seed} {index}")
        name, fault = chance.choice(self.names), chance.choice(FAULTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operations, whole = self.undisturbed(name)
            return self.trial(name, fault, chance.randint(1, operations), whole)

    def trial(self, name: str, fault: str, at: int, whole: Any) -> Told:
        folder = self._empty("subject", WORKS[name].into_a_file)
        left = self._empty("left")
        disk = FaultyDisk(folder, at, fault, left)
        try:
            with installed(disk):
                complaint = _complaint(WORKS[name], folder)
            if fault in KILLS:
                shutil.rmtree(folder, ignore_errors=True)
                if left.exists():
                    left.rename(folder)
            wrong = complaint or _afterwards(WORKS[name], folder, whole)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            wrong = f"crash: {type(error).__name__} at {where}: {error}"
        return Told(name, fault, f"operation {at}, {disk.what}", wrong[:400])

    def _empty(self, name: str, there: bool = False) -> Path:
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        if there:
            folder.mkdir()
        return folder


def _complaint(work: Work, folder: Path) -> str:
    """What is wrong with the way in which a work ended; a kill ends it without a word."""
    try:
        work.start(folder)
    except Killed:
        return ""
    except FlmarketError as error:
        told = " ".join(str(error).split())
        return "" if folder.name in told else f"refused without a name: {told}"
    return ""


def _afterwards(work: Work, folder: Path, whole: Any) -> str:
    """What is wrong with reading and going on."""
    if work.read is not None and folder.exists():
        try:
            seen = work.read(folder)
            if isinstance(seen, tuple) and seen != whole[0][: len(seen)]:
                return "what is read is no beginning of the whole"
        except FlmarketError as error:
            if folder.name not in str(error):
                return f"reading refuses without a name: {error}"
    work.start(folder)
    if digest(work.result(folder)) != digest(whole):
        return "the result differs from that of undisturbed work"
    return ""


def attack(
    count: int, seed: int, workers: int, progress: Progress, only: int | None = None
) -> Outcome:
    """So many faults, or the one with the number `only`."""
    outcome, began = Outcome("faults"), time.monotonic()
    indices = range(count) if only is None else [only]
    tally: Counter[tuple[str, str, bool]] = Counter()
    with tempfile.TemporaryDirectory(prefix="flmarket-attack-") as scratch:
        for index, told in perform(partial(FaultTrials, Path(scratch), seed), indices, workers):
            outcome.trials += 1
            again = f"python -m benchmarks.attack faults --seed {seed} --only {index}"
            if isinstance(told, Lost):
                outcome.failures.append(Failure(index, "hang or death", told.why, again))
            else:
                tally[told.work, told.fault, bool(told.wrong)] += 1
                if told.wrong:
                    sort = f"{told.work}, {told.fault}: {told.wrong.split(':')[0]}"
                    what = f"{told.where}: {told.wrong}"
                    outcome.failures.append(Failure(index, sort, what, again))
            progress(outcome.trials, len(indices), len(outcome.failures))
    outcome.rows = [_row(name, tally) for name in WORKS]
    outcome.seconds = time.monotonic() - began
    return outcome


def _row(name: str, tally: Counter[tuple[str, str, bool]]) -> dict[str, Any]:
    faults = {fault: tally[name, fault, False] + tally[name, fault, True] for fault in FAULTS}
    return {"work": name, **faults, "bad": sum(tally[name, fault, True] for fault in FAULTS)}
