"""`flmarket sweep`: the runs of a scenario over axes and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.crew import Cluster, ClusterOptions, ClusterWait, Workers, crew_from
from flmarket_sim.cli.output import AsJson, Overrides, print_json, progress, stderr, stdout
from flmarket_sim.errors import FlmarketError
from flmarket_sim.storage.result_folders import result_folder


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
        typer.Option(help="Directory of the sweep: a new one, or this sweep's to go on."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario over axes and seeds. The same command again continues a stopped sweep.

    Exit 1 if a run failed.
    """
    from flmarket_sim.report import sweep_tables as report
    from flmarket_sim.sweep.sweep_folder import finished_runs
    from flmarket_sim.sweep.sweep_plan import load_sweep
    from flmarket_sim.sweep.sweep_runs import run_sweep

    planned = load_sweep(scenario, overrides or ())
    folder = out or result_folder(f"sweep-{planned.name}", planned.digest)
    finished = finished_runs(folder, planned)
    if plan and as_json:
        print_json(report.plan_rows(planned, finished))
        return
    crew = crew_from(workers, cluster, cluster_options, cluster_wait, isolate=True)
    if plan or not as_json:
        (stdout if plan else stderr).print(report.plan_table(planned, finished))
    if plan:
        return
    try:
        with progress(planned.name, "runs") as report_progress:
            summary = run_sweep(planned, folder, progress=report_progress, crew=crew)
    except KeyboardInterrupt:
        raise FlmarketError(
            f"interrupted; what is done is in {folder}, and the same command goes on from there"
        ) from None
    failed = summary.column("outcome").to_pylist().count("failed")
    if as_json:
        print_json(
            {
                "directory": str(folder),
                "runs": len(planned.runs),
                "failed": failed,
                "means": report.means(summary, planned),
            }
        )
    else:
        stdout.print(report.render(summary, planned, str(folder)))
    if failed:
        raise typer.Exit(1)
