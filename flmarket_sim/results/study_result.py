"""`fm.study`: the answer to the question in the [study] table of a scenario."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flmarket_sim.experiments.engine import Progress
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.report import study_folder
from flmarket_sim.results.arguments import AnyScenario, scenario_from
from flmarket_sim.results.performing import crew_of, shown_progress
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.result_folders import free_folder, result_folder
from flmarket_sim.studies.study import Finding, Plot
from flmarket_sim.studies.study_run import is_unfinished, question_of, run_study
from flmarket_sim.tables.result_table import ResultTable


def study(
    scenario: AnyScenario,
    out: str | os.PathLike[str] | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    crew: Crew | None = None,
    present: Callable[[Finding, Path, Scenario], None] = study_folder.write,
    **changes: Any,
) -> StudyResult:
    """Answers the question of a scenario, and writes table, rows and figure to a directory.

    Parameters
    ----------
    scenario
        A file with a [study] table, the name of a shipped one ("studies/liars"), or a Scenario.
        Other keywords change its values: `study__profiles=50`.
    out
        A new directory, or that of a study that was stopped, which then continues. By default it
        is `runs/study-NAME-HASH`, as on the command line.
    workers, progress
        Processes to use, and a function that is called with (tasks done, tasks in all).
    crew
        Does the tasks in place of `workers`.
    present
        Writes the finding into the directory, `study.json` last.
    """
    loaded = scenario_from(scenario, changes)
    question = question_of(loaded)
    folder = usual_folder(loaded) if out is None else Path(out)
    doers = crew or crew_of(workers)
    with shown_progress(loaded.name, f"tasks of {question.name}", progress) as report:
        finding = run_study(loaded, folder, present, crew=doers, progress=report)
    return StudyResult(finding, loaded, folder)


def usual_folder(scenario: Scenario) -> Path:
    """Where a study goes if nobody names a directory: that of a stopped one, or a free one."""
    place = (f"study-{scenario.name}", scenario.digest())
    usual = result_folder(*place)
    return usual if is_unfinished(usual) else free_folder(*place)


@dataclass(frozen=True, repr=False)
class StudyResult(Result):
    """The finding of a study: rows, sentences and a figure, which are in the directory `path`."""

    finding: Finding
    scenario: Scenario
    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def table(self) -> ResultTable:
        return ResultTable.of(self.finding.rows)

    @property
    def title(self) -> str:
        return f"{self.scenario.name}: {question_of(self.scenario).name}, in {self.path}"

    @property
    def sentences(self) -> list[str]:
        return [*(f"- {sentence}" for sentence in self.finding.sentences), self.finding.intervals]

    def parts(self) -> list[ResultPart]:
        shown = self.finding.shown_rows or self.finding.rows
        return [ResultPart(shown, self.finding.shown_columns())]

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        return self.finding.drawn or self.finding.rows, self.finding.plot

    def as_json(self) -> dict[str, Any]:
        return {
            "directory": str(self.path),
            "rows": self.finding.rows,
            "sentences": self.finding.sentences,
        }
