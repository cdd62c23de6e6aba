"""`flmarket audit`: does an auction do what it says?"""

from __future__ import annotations

from typing import Annotated

import typer

from flmarket_sim.cli.crew import (
    Cluster,
    ClusterOptions,
    ClusterWait,
    Workers,
    crew_from,
    task_results,
)
from flmarket_sim.cli.output import AsJson, print_json, stdout


def audit(
    auction: Annotated[
        str, typer.Argument(metavar="AUCTION", help="NAME, NAME@WEIGHTS or module:Class.")
    ],
    effort: Annotated[str, typer.Option(help="quick, standard or exhaustive.")] = "quick",
    markets: Annotated[
        int | None,
        typer.Option(
            min=1, help="Markets of each class of owners, if not the effort's 80, 320 or 640."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the markets and of the search.")] = 0,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    as_json: AsJson = False,
) -> None:
    """Search for small markets that refute the promises of an auction. Exit 1 if there are any."""
    from flmarket_sim.auctions.auction_name import AuctionName
    from flmarket_sim.report import audit_tables
    from flmarket_sim.studies.auction_audit_tasks import AuditInTasks, check_property

    audit = AuditInTasks(auction, effort, seed, markets)
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    with task_results("audit", audit.tasks, check_property, crew, "checks") as results:
        report = audit.report(results)
        if as_json:
            print_json(report.as_dict() | {"auction": auction})
        else:
            stdout.print(audit_tables.render(AuctionName.parse(auction).label, report))
    if not report.passed:
        raise typer.Exit(1)
