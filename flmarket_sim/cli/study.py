"""`flmarket study`: answer the question in the [study] table of a scenario."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.output import AsJson, Overrides, print_json, print_text, progress, stdout
from flmarket_sim.errors import FlmarketError
from flmarket_sim.storage.result_folders import free_folder, result_folder


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
        typer.Option(help="Directory for table, rows and figure: new, or of a stopped study."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study. It writes a table, Parquet and a figure; a stopped study continues."""
    from flmarket_sim.report import study_folder as report
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.studies.study_run import is_unfinished, question_of, run_study

    loaded = load_scenario(scenario, overrides or ())
    question = question_of(loaded)
    place = (f"study-{loaded.name}", loaded.digest())
    usual = result_folder(*place)
    folder = out or (usual if is_unfinished(usual) else free_folder(*place))
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    began = time.perf_counter()
    try:
        with progress(loaded.name, f"tasks of {question.name}") as report_progress:
            finding = run_study(loaded, folder, report.write, crew=crew, progress=report_progress)
    except KeyboardInterrupt:
        raise FlmarketError(
            f"interrupted; finished tasks are in {folder}, and the same command continues"
        ) from None
    if as_json:
        rows = {"rows": finding.rows, "sentences": finding.sentences}
        print_json({"directory": str(folder)} | rows)
        return
    stdout.print(report.render(finding))
    print_text(f"{time.perf_counter() - began:.0f} s; table, rows and figure are in {folder}")
