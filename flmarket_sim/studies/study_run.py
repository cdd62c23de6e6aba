"""Runs the study of a scenario: its tasks go to a crew, and its directory keeps what is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.content import file_contents
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.experiments.store import FileStore, Store
from flmarket_sim.experiments.task import task_key
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import Plugin, Scenario
from flmarket_sim.storage.result_folders import claim
from flmarket_sim.studies.study import Finding, Progress, Row, Study

TASKS = "tasks.jsonl"
FINISHED = "study.json"


@dataclass(frozen=True)
class StudyTask:
    """One task of a study. Options of the study that `work` does not mention are not in its key."""

    scenario: Scenario
    study: str
    work: str  # JSON

    @cached_property
    def key(self) -> str:
        market = self.scenario.model_copy(update={"study": None, "name": "", "description": ""})
        content = file_contents([market.as_dict(), json.loads(self.work), self.study])
        return task_key(market.digest(), self.study, self.work, json.dumps(content))

    @property
    def label(self) -> str:
        return f"{self.scenario.name}, task {self.work}"


def measure_task(task: StudyTask) -> list[Row]:
    """The rows of one task, measured in this process."""
    study = registry.studies.get(task.study)
    rows: list[Row] = study.measure(task.scenario, json.loads(task.work))
    return rows


def question_of(scenario: Scenario) -> Plugin:
    """The [study] table of a scenario."""
    if scenario.study is None:
        known = ", ".join(registry.studies.names())
        raise InputError(
            f"{scenario.name} asks no question: it has no [study] table with a name, one of {known}"
        )
    return scenario.study


def study_of(scenario: Scenario) -> Study:
    """The study that a scenario asks for, with its options checked."""
    question = question_of(scenario)
    study: Study = registry.studies.create(question.name, **question.options)
    return study


def find_out(
    scenario: Scenario,
    *,
    crew: Crew | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> Finding:
    """The finding of a scenario's study. The store keeps the rows of every finished task."""
    study, name = study_of(scenario), question_of(scenario).name
    tasks = [
        StudyTask(scenario, name, json.dumps(work, sort_keys=True))
        for work in study.tasks(scenario)
    ]
    rows = results_of(tasks, measure_task, crew=crew, store=store, progress=progress)
    return study.conclude(scenario, rows)


def run_study(
    scenario: Scenario,
    out: str | Path,
    present: Callable[[Finding, Path, Scenario], Any],
    *,
    crew: Crew | None = None,
    progress: Progress | None = None,
) -> Finding:
    """Runs a study into a new directory, or continues one that was stopped there.

    `present` writes the finding into the directory, and `study.json` last: that file marks a
    finished study.
    """
    study_of(scenario)
    folder = Path(out)
    if not is_unfinished(folder):
        claim(folder, "study")
    try:
        with FileStore(folder / TASKS) as store:
            finding = find_out(scenario, crew=crew, store=store, progress=progress)
            present(finding, folder, scenario)
            store.delete()
    finally:
        with suppress(OSError):
            folder.rmdir()  # succeeds only where nothing was written
    return finding


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds a study that was stopped before its end."""
    return (folder / TASKS).exists() and not (folder / FINISHED).exists()
