"""`flmarket privacy`: an audit of the noise, and the privacy ledger of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.crew import (
    Cluster,
    ClusterOptions,
    ClusterWait,
    Workers,
    crew_from,
    task_results,
)
from flmarket_sim.cli.output import AsJson, print_json, stdout

if TYPE_CHECKING:
    from flmarket_sim.privacy import AuditResult

app = typer.Typer(
    help="Audit the noise, or show the privacy ledger of a run.", no_args_is_help=True, **LOOK
)


@app.command()
def audit(
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
    clip: Annotated[float, typer.Option(min=1e-6, max=1e6, help="L.")] = 1.0,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=1 - 1e-9, help="Of each lower bound.")
    ] = 0.9999,
    seed: Annotated[int, typer.Option(min=0, help="Of the simulation noise.")] = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    as_json: AsJson = False,
) -> None:
    """Bound the privacy loss of released gradients from below. Exit 1 if a claim is refuted."""
    from flmarket_sim.privacy import require_noise
    from flmarket_sim.studies.privacy_audit_tasks import audit_results, count_hits, noise_tasks

    require_noise(noise)
    tasks = noise_tasks(epsilon or (0.5, 1.0, 2.0), clip, draws, seed, noise)
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    with task_results("privacy-audit", tasks, count_hits, crew, "batches") as hits:
        results = audit_results(tasks, hits, confidence)
        if as_json:
            rows = [vars(result) | {"passed": result.passed, "noise": noise} for result in results]
            print_json(rows)
        else:
            _print_table(results)
            stdout.print(
                f"{noise} noise, {draws:,} gradients for each of two inputs, L = {clip:g}; each "
                f"bound holds with confidence {confidence:g}. A claim that is not refuted is not "
                "proven.",
                highlight=False,
            )
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _print_table(results: list[AuditResult]) -> None:
    table = Table(box=None, pad_edge=False)
    for head in ("claimed e", "shown: e is at least", "within reach of the draws", "verdict"):
        table.add_column(head, justify="right")
    for result in results:
        verdict = "not refuted" if result.passed else "REFUTED"
        table.add_row(
            f"{result.claimed:g}", f"{result.lower_bound:.4f}", f"{result.reach:.4f}", verdict
        )
    stdout.print(table)


@app.command()
def ledger(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    delta: Annotated[
        float, typer.Option(help="Chance of failure that the tighter figure allows.")
    ] = 1e-6,
    top: Annotated[
        int, typer.Option(min=1, help="How many owners, those who sold most first.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what owners sold in all, by the ledger and by dp-accounting.

    Exit 1 if the ledger differs from the sums of the log.
    """
    from flmarket_sim.report import privacy_ledger as report

    owners_report = report.read(directory, delta, top)
    if as_json:
        print_json(owners_report.as_dict())
    else:
        stdout.print(report.render(owners_report))
    if owners_report.wrong:
        raise typer.Exit(1)
