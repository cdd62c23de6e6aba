"""Finished and unfinished results to damage: runs, sweeps, studies and weights, all small.

Each has a twin beside it, made with another seed: a folder with files of the same names.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from flmarket_sim.auctions.learned import weight_names
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.eventlog.view_numbers import view_key
from flmarket_sim.experiments.worker_processes import ThisProcess
from flmarket_sim.market import checkpoint
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.sweep.sweep_plan import Plan, plan_sweep

SMALL = {"rounds": 4, "owners__count": 24, "market__bidders": 5}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {  # name: a shipped scenario, and how it is changed
    "learning": ("quickstart", {}),
    "kept models": ("quickstart", {"log__models": "every", "model__averaging": 0.5}),
    "several buyers": ("studies/unreliable", {}),
    "misreporting owners": ("studies/liars", {"data__records": 600}),
}
KILLED = "killed run"
SWEEPS = ("sweep", "stopped sweep")
STUDIES = ("study", "stopped study")
WEIGHTS = {  # mechanism: the shipped weights that are copied, and the twin's, of another mechanism
    "dm-regretnet": ("general.dm-regretnet", "general.m-regretnet"),
    "seq-price": ("general.seq-price", "general.dm-regretnet"),
    "record-price": ("paper-all.record-price", "general.seq-price"),
}
EVENTS_PER_PART = 120  # so that a run has several parts
TWIN_SEED = 99


@dataclass(frozen=True)
class Specimen:
    """A result. Its folder is ROOT/NAME/whole, that of its twin ROOT/NAME/twin."""

    name: str
    kind: str
    root: Path

    @property
    def whole(self) -> Path:
        return self.root / self.name / "whole"

    @property
    def twin(self) -> Path:
        return self.root / self.name / "twin"


def kinds() -> dict[str, str]:
    """The kind of every specimen, by its name."""
    return {
        **dict.fromkeys(RUNS, "run"),
        KILLED: KILLED,
        **{name: name for name in (*SWEEPS, *STUDIES)},
        **dict.fromkeys(WEIGHTS, "weights"),
    }


def make_all(root: Path, names: Iterable[str] = ()) -> None:
    """Fills a folder with every specimen and its twin, or with those of some names."""
    for name in names or kinds():
        for folder, seed in (("whole", 1), ("twin", TWIN_SEED)):
            (root / name).mkdir(parents=True, exist_ok=True)
            make(name, root / name / folder, seed)
            for path in (root / name / folder).rglob("run.json"):
                # so that all views of its copies have the same numbers
                view_key(path.parent, fm.read_run(path.parent))


def specimens(root: Path) -> list[Specimen]:
    """The specimens that a folder has."""
    return [Specimen(name, kind, root) for name, kind in kinds().items() if (root / name).exists()]


def make(name: str, folder: Path, seed: int) -> None:
    if name in RUNS:
        scenario, changes = RUNS[name]
        with often():
            fm.run(scenario, folder, seed=seed, **SMALL, **changes)
    elif name == KILLED:
        with often():
            _killed(folder, 3, lambda at, progress: fm.run(killed_market(seed), at, progress))
    elif name == "sweep":
        fm.run_sweep(sweep_plan(seed), folder, crew=ThisProcess())
    elif name == "stopped sweep":
        sweep = partial(fm.run_sweep, sweep_plan(seed), crew=ThisProcess())
        _killed(folder, 2, lambda at, progress: sweep(at, progress=progress))
    elif name == "study":
        fm.study(study_scenario(seed), folder, progress=_silent)
    elif name == "stopped study":
        study = partial(fm.study, study_scenario(seed))
        _killed(folder, 1, lambda at, progress: study(at, progress=progress))
    else:
        folder.mkdir()
        source = WEIGHTS[name][seed == TWIN_SEED]
        shutil.copy(weight_names.SHIPPED / f"{source}.safetensors", folder / "own.safetensors")


def killed_market(seed: int = 1) -> Scenario:
    return fm.load_scenario("quickstart", seed=seed, **SMALL)


def sweep_plan(seed: int = 1) -> Plan:
    """Two auctions with two seeds."""
    scenario = fm.load_scenario("studies/unreliable", buyers=[], **SMALL)
    table = {"grid": {"auction.name": ["all-in", "fair-query"]}, "seeds": [seed, seed + 1]}
    return plan_sweep(scenario, **{f"sweep__{key}": value for key, value in table.items()})


def study_scenario(seed: int = 1) -> Scenario:
    """The gain of misreports in a market of our own data, at two budget factors."""
    return fm.load_scenario(
        "studies/misreport-gain",
        seed=seed,
        data={"name": "synthetic", "records": 600},
        owners__count=24,
        study__auctions=["all-in"],
        study__factors=[0.5, 1.0],
        study__profiles=2,
    )


def _killed(folder: Path, results: int, start: Callable[[Path, Any], object]) -> None:
    """What a kill after so many results leaves: the folder as it is on the disk at that moment."""
    alive = folder.with_name("alive")

    def progress(done: int, total: int) -> None:
        if done == results and not folder.exists():
            shutil.copytree(alive, folder)

    start(alive, progress)
    shutil.rmtree(alive)


def _silent(done: int, total: int) -> None:
    """No progress bar."""


@contextmanager
def often() -> Iterator[None]:
    """Parts, journal and checkpoints are written after nearly every round."""
    before = (
        parquet_log.EVENTS_PER_PART,
        parquet_log.JOURNAL_SECONDS,
        checkpoint.SECONDS,
        checkpoint.SHARE,
    )
    parquet_log.EVENTS_PER_PART, parquet_log.JOURNAL_SECONDS = EVENTS_PER_PART, 0.0
    checkpoint.SECONDS, checkpoint.SHARE = 0.0, 1e9
    try:
        yield
    finally:
        parquet_log.EVENTS_PER_PART, parquet_log.JOURNAL_SECONDS = before[:2]
        checkpoint.SECONDS, checkpoint.SHARE = before[2:]
