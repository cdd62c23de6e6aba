"""`flmarket study`: answer the question in the [study] table of a scenario."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.figure_options import (
    FigureFile,
    FigureTitle,
    FigureWidth,
    LegendNames,
    XLabel,
    YLabel,
    figure_style,
)
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    Wide,
    directory_and_table,
    print_json,
    print_next_steps,
    print_note,
    print_paragraphs,
    print_table,
    print_text,
    progress,
    save_table,
)
from flmarket_sim.errors import Interrupted

if TYPE_CHECKING:
    from flmarket_sim.studies.study import Finding


def study(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file with a [study] table.")
    ],
    overrides: Overrides = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for table, rows and figure: new, or of a stopped study; or a file for "
            "the table: .csv, .md, .tex, .parquet."
        ),
    ] = None,
    figure: FigureFile = None,
    width: FigureWidth = None,
    x_label: XLabel = None,
    y_label: YLabel = None,
    title: FigureTitle = None,
    names: LegendNames = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Run a study. It writes a table, Parquet and a figure; a stopped study continues."""
    from flmarket_sim.results import study_result
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.studies.study_run import question_of

    style = figure_style(width, x_label, y_label, title, names)
    loaded = load_scenario(scenario, overrides or ())
    question = question_of(loaded)
    directory, table = directory_and_table(out)
    folder = directory or study_result.usual_folder(loaded)
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    began = time.perf_counter()
    try:
        with progress(loaded.name, f"tasks of {question.name}") as report_progress:
            result = study_result.study(loaded, folder, progress=report_progress, crew=crew)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; finished tasks are in {folder}, and the same command continues"
        ) from None
    save_table(result.finding.rows, table)
    if figure is not None:
        print_note(f"the figure is in {result.save(figure, style)}")
    if as_json:
        print_json(result.as_json())
        return
    show_finding(result.finding, wide)
    print_text(f"{time.perf_counter() - began:.0f} s; table, rows and figure are in {folder}")
    print_next_steps(f"flmarket report {shlex.quote(str(folder))}")


def show_finding(finding: Finding, wide: bool = False) -> None:
    """Prints the rows that answer the question, the sentences, and what intervals are of."""
    print_table(finding.rows, finding.shown_columns(), wide, finding.shown_rows)
    print_paragraphs([*(f"- {sentence}" for sentence in finding.sentences), finding.intervals])
