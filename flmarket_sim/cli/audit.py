"""`flmarket audit`: does an auction do what it says?"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from flmarket_sim.cli.crew import (
    Cluster,
    ClusterOptions,
    ClusterWait,
    Workers,
    before_any_result,
    crew_from,
    performer,
)
from flmarket_sim.cli.figure_options import (
    FigureFile,
    FigureTitle,
    FigureWidth,
    LegendNames,
    XLabel,
    YLabel,
    figure_style,
)
from flmarket_sim.cli.output import AUCTION_HELP, AsJson, TableFile, Wide
from flmarket_sim.cli.results import print_result, write_result


def audit(
    auctions: Annotated[list[str], typer.Argument(metavar="AUCTION...", help=AUCTION_HELP)],
    effort: Annotated[str, typer.Option(help="quick, standard or exhaustive.")] = "quick",
    markets: Annotated[
        int | None,
        typer.Option(
            min=1, help="Markets of each class of owners, if not the effort's 80, 320 or 640."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the markets and of the search.")] = 0,
    out: TableFile = None,
    figure: FigureFile = None,
    width: FigureWidth = None,
    x_label: XLabel = None,
    y_label: YLabel = None,
    title: FigureTitle = None,
    names: LegendNames = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Search for small markets that refute the promises of auctions. Exit 1 if there are any."""
    from flmarket_sim.results import audit_result

    style = figure_style(width, x_label, y_label, title, names)
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    with before_any_result(), ExitStack() as until:
        result = audit_result.audit(
            auctions, effort=effort, markets=markets, seed=seed, perform=performer(until, crew)
        )
        write_result(result, out, figure, style)
        print_result(result, as_json, wide)
    if not result.passed:
        raise typer.Exit(1)
