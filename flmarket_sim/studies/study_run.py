"""Runs the study of a scenario: its tasks go to a crew, and its directory keeps what is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from flmarket_sim.auctions.auction_name import auction_labels
from flmarket_sim.errors import InputError, plugin_errors
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.experiments.store import FileStore, Store
from flmarket_sim.experiments.task import task_key
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.storage.result_folders import claim, give_up
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
    with plugin_errors("study", study.name):
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
    with plugin_errors("study", study.name):
        works = [json.dumps(work, sort_keys=True) for work in study.tasks(scenario)]
    tasks = [StudyTask(scenario, name, work) for work in works]
    rows = results_of(tasks, measure_task, crew=crew, store=store, progress=progress)
    with plugin_errors("study", study.name):
        return labelled(study.conclude(scenario, rows))


def labelled(finding: Finding) -> Finding:
    """The finding with the labels of its auctions, in rows, figure and sentences."""
    rows = [*finding.rows, *(finding.drawn or ())]
    names = dict.fromkeys(row["auction"] for row in rows if isinstance(row.get("auction"), str))
    labels = {name: label for name, label in auction_labels(names).items() if name != label}

    def relabelled(some: list[Row]) -> list[Row]:
        return [
            row | {"auction": labels.get(row["auction"], row["auction"])}
            if "auction" in row
            else row
            for row in some
        ]

    sentences = list(finding.sentences)
    for name in sorted(labels, key=len, reverse=True):
        sentences = [sentence.replace(name, labels[name]) for sentence in sentences]
    drawn, shown = (
        None if some is None else relabelled(some) for some in (finding.drawn, finding.shown_rows)
    )
    return replace(
        finding, rows=relabelled(finding.rows), drawn=drawn, shown_rows=shown, sentences=sentences
    )


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
        with FileStore(folder / TASKS, list[Row]) as store:
            give_up(folder)  # from here on the store keeps others out
            finding = find_out(scenario, crew=crew, store=store, progress=progress)
            present(finding, folder, scenario)
            store.delete()
    finally:
        give_up(folder)
        with suppress(OSError):
            folder.rmdir()  # succeeds only where nothing was written
    return finding


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds a study that was stopped before its end."""
    return (folder / TASKS).exists() and not (folder / FINISHED).exists()
