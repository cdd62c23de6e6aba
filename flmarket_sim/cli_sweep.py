"""`flmarket sweep`: the many runs that a scenario file asks for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli_output import AsJson, Overrides, print_json, progress, stderr, stdout
from flmarket_sim.errors import FlmarketError


def sweep(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file with a [sweep] table.")],
    overrides: Overrides = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the table of runs and stop.")] = False,
    out: Annotated[Path | None, typer.Option(help="Directory of the sweep: a new one, or this sweep's to go on.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario over axes and seeds; the same command again goes on where it stopped. Exit 1 if a run failed."""
    from flmarket_sim.report import sweep as report
    from flmarket_sim.study.sweep import run_sweep
    from flmarket_sim.study.sweep_file import load_sweep
    from flmarket_sim.study.sweep_folder import finished_runs

    planned = load_sweep(scenario, overrides or ())
    safe = re.sub(r"[^\w.-]+", "-", planned.name)[:60]
    folder = out or Path("runs") / f"sweep-{safe}-{planned.digest[:8]}"
    finished = finished_runs(folder, planned)
    if plan and as_json:
        print_json(report.plan_rows(planned, finished))
        return
    if plan or not as_json:
        (stdout if plan else stderr).print(report.plan_table(planned, finished))
    if plan:
        return
    try:
        with progress(planned.name, "runs") as tell:
            summary = run_sweep(planned, folder, workers or _cores(), tell)
    except KeyboardInterrupt:
        raise FlmarketError(f"interrupted; what is done is in {folder}, and the same command goes on from there") from None
    failed = summary.column("outcome").to_pylist().count("failed")
    if as_json:
        print_json(
            {"directory": str(folder), "runs": len(planned.runs), "failed": failed, "means": report.means(summary, planned)}
        )
    else:
        stdout.print(report.render(summary, planned, str(folder)))
    if failed:
        raise typer.Exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
