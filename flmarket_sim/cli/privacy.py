"""`flmarket privacy`: an audit of perturbations, and the privacy ledger of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.crew import (
    Cluster,
    ClusterOptions,
    ClusterWait,
    Workers,
    before_any_result,
    crew_from,
    task_results,
)
from flmarket_sim.cli.output import (
    AsJson,
    TableFile,
    Wide,
    print_json,
    print_paragraphs,
    print_table,
    save_table,
)

app = typer.Typer(
    help="Audit a perturbation, or show the privacy ledger of a run.", no_args_is_help=True, **LOOK
)


@app.command()
def audit(
    perturbation: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]", help="A perturbation: NAME, module:Class or file.py:Class."
        ),
    ] = "laplace",
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="Of it, e.g. length=unit."),
    ] = None,
    dimension: Annotated[int, typer.Option(min=1, max=10**6, help="Coordinates.")] = 10,
    noise: Annotated[
        Literal["simulation", "hardened"], typer.Option(help="As in [privacy] of a scenario.")
    ] = "simulation",
    epsilon: Annotated[
        list[float] | None,
        typer.Option(min=1e-6, help="Claimed privacy loss; may be given again. Else 0.5, 1 and 2."),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=100, help="Gradients released for each of the two inputs.")
    ] = 1_000_000,
    one_by_one: Annotated[
        int, typer.Option(min=0, help="More of them that leave one by one, as in a market.")
    ] = 2_000,
    clip: Annotated[float, typer.Option(min=1e-6, max=1e6, help="The threshold.")] = 1.0,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=1 - 1e-9, help="Of each lower bound.")
    ] = 0.999,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation noise.")] = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Bound the privacy loss of released gradients from below. Exit 1 if a claim is refuted."""
    from flmarket_sim.privacy.privacy_audit import PrivacyClaim
    from flmarket_sim.report import privacy_audit_table as report
    from flmarket_sim.studies.privacy_audit_tasks import audit_results, audit_tasks, count_hits

    with before_any_result():
        claim = PrivacyClaim(1.0, dimension, clip, noise, seed)
        losses = epsilon or (0.5, 1.0, 2.0)
        given = report.options(options or [])
        tasks = audit_tasks(perturbation, given, losses, claim, draws, one_by_one)
        crew = crew_from(workers, cluster, cluster_options, cluster_wait)
        with task_results("privacy-audit", tasks, count_hits, crew, "batches") as hits:
            results = audit_results(tasks, hits, confidence)
            about = {"perturbation": perturbation, "dimension": dimension, "noise": noise}
            rows = [report.row(result) | about for result in results]
            save_table(rows, table)
            if as_json:
                print_json([row | {"options": given} for row in rows])
            else:
                print_table(report.shown_rows(results), wide=wide)
                print_paragraphs([report.meaning(perturbation, given, claim, results[0])])
    if not all(result.passed for result in results):
        raise typer.Exit(1)


@app.command()
def ledger(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    delta: Annotated[
        float, typer.Option(help="Chance of failure that the tighter figure allows.")
    ] = 1e-6,
    top: Annotated[
        int, typer.Option(min=1, help="How many owners, those who sold most first.")
    ] = 10,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Show what owners sold in all, by the ledger and by dp-accounting.

    Exit 1 if the ledger differs from the sums of the log.
    """
    from flmarket_sim.report import privacy_ledger as report

    owners_report = report.read(directory, delta, top)
    save_table(report.rows(owners_report), table)
    if as_json:
        print_json(owners_report.as_dict())
    else:
        print_table(report.shown_rows(owners_report), wide=wide)
        print_paragraphs([report.meaning(owners_report)])
    if owners_report.wrong:
        raise typer.Exit(1)
