"""`flmarket sweep`: the many runs that a scenario file asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    cores,
    print_json,
    progress,
    result_folder,
    stderr,
    stdout,
)
from flmarket_sim.errors import FlmarketError, InputError

if TYPE_CHECKING:
    from flmarket_sim.experiments.worker_processes import Crew


def sweep(
    scenario: Annotated[
        Path, typer.Argument(metavar="SCENARIO", help="A scenario file with a [sweep] table.")
    ],
    overrides: Overrides = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes; by default one a core. With --cluster slurm: jobs; by default one.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local|slurm", help="Run on Dask workers; docs/clusters.md says how."
        ),
    ] = None,
    cluster_options: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster-option", metavar="KEY=VALUE", help="Of a SLURM job, e.g. memory=8GB."
        ),
    ] = None,
    cluster_wait: Annotated[
        float, typer.Option(min=1.0, help="Seconds that a cluster may be without a worker.")
    ] = 300.0,
    plan: Annotated[bool, typer.Option("--plan", help="Print the table of runs and stop.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory of the sweep: a new one, or this sweep's to go on."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario over axes and seeds; the same command again goes on where it stopped. Exit 1 if a run failed."""
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
    if cluster is None and cluster_options:
        raise InputError("--cluster-option needs --cluster slurm")
    if plan or not as_json:
        (stdout if plan else stderr).print(report.plan_table(planned, finished))
    if plan:
        return
    crew = None if cluster is None else _crew(cluster, workers, cluster_options or [], cluster_wait)
    try:
        with progress(planned.name, "runs") as tell:
            summary = run_sweep(planned, folder, workers or cores(), tell, crew)
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


def _crew(where: str, workers: int | None, options: list[str], wait: float) -> Crew:
    try:
        from flmarket_sim.experiments.dask_places import crew_at
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "flmarket_sim":
            raise
        raise InputError(
            f"--cluster needs {error.name}, which is not here: pip install 'flmarket-sim[cluster]'"
        ) from None
    workers = cores() if where == "local" and workers is None else workers
    return crew_at(
        where,
        workers,
        options,
        wait,
        lambda text: stderr.print(text, highlight=False, markup=False, soft_wrap=True),
    )
