"""`flmarket study`: the question that a scenario file asks of its market."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, Overrides, free_folder, print_json, progress, stdout


def study(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file with a [study] table.")
    ],
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for table, rows and figure; new or empty.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: a question asked of a market many times over. Table, Parquet and figure come out."""
    from flmarket_sim.report import study_folder as report
    from flmarket_sim.scenario.scenario_file import load_scenario

    loaded = load_scenario(scenario, overrides or ())
    question = report.question_of(loaded)
    folder = out or free_folder(f"study-{loaded.name}", loaded.digest())
    with progress(loaded.name, question.name) as tell:
        finding, seconds = report.run_study(loaded, folder, tell)
    if as_json:
        print_json(
            {
                "directory": str(folder),
                "seconds": seconds,
                "rows": finding.rows,
                "sentences": finding.sentences,
            }
        )
        return
    stdout.print(report.render(finding))
    stdout.print(
        f"{seconds:.0f} s; table, rows and figure are in {folder}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
