"""`flmarket sweep`: the runs of a scenario over axes and seeds."""

from __future__ import annotations

import shlex
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
    from flmarket_sim.results.sweep_result import SweepResult
    from flmarket_sim.sweep.sweep_plan import Plan


def sweep(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file with a [sweep] table.")
    ],
    overrides: Overrides = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    plan: Annotated[bool, typer.Option("--plan", help="Print the table of runs and stop.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the sweep: a new one, or this sweep's to go on; or a file for the "
            "means: .csv, .md, .tex, .parquet."
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
    """Run a scenario over axes and seeds. The same command again continues a stopped sweep.

    Exit 1 if a run failed.
    """
    from flmarket_sim.report import sweep_tables as report
    from flmarket_sim.results import sweep_result
    from flmarket_sim.sweep.sweep_folder import finished_runs
    from flmarket_sim.sweep.sweep_plan import load_sweep

    style = figure_style(width, x_label, y_label, title, names)
    planned = load_sweep(scenario, overrides or ())
    directory, table = directory_and_table(out)
    folder = directory or sweep_result.usual_folder(planned)
    finished = finished_runs(folder, planned)
    if plan:
        _show_plan(planned, finished, table, wide, as_json)
        return
    crew = crew_from(workers, cluster, cluster_options, cluster_wait, isolate=True)
    print_note(report.plan_sentence(planned, finished))
    try:
        with progress(planned.name, "runs") as report_progress:
            result = sweep_result.sweep(planned, folder, progress=report_progress, crew=crew)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; what is done is in {folder}, and the same command goes on from there"
        ) from None
    save_table(result.parts()[0].rows, table)
    if figure is not None:
        print_note(f"the figure is in {result.save(figure, style)}")
    if as_json:
        print_json(result.as_json())
    else:
        _show(result, wide)
    if result.failed:
        raise typer.Exit(1)


def _show_plan(plan: Plan, finished: set[str], table: Path | None, wide: bool, js: bool) -> None:
    from flmarket_sim.report import sweep_tables as report

    lines = report.plan_lines(plan, finished)
    save_table(lines, table)
    if js:
        print_json(report.plan_rows(plan, finished))
        return
    print_table(lines, wide=wide, some=lines[: report.MOST_LINES])
    print_paragraphs([report.plan_sentence(plan, finished)])


def _show(result: SweepResult, wide: bool) -> None:
    """Means over seeds, differences from the first value of an axis of names, and failures."""
    from flmarket_sim.report.sweep_tables import MOST_LINES

    means, *differences = result.parts()
    print_table(means.rows, means.columns, wide, means.rows[:MOST_LINES])
    for part in differences:
        print_text("")
        print_text(part.title)
        print_table(part.rows, part.columns, wide)
    print_paragraphs(result.sentences)
    print_text(f"Every run is a row of {result.path / 'summary.parquet'}")
    print_next_steps(f"flmarket report {shlex.quote(str(result.path))}")
