"""`flmarket probe`: how much owners gain by misreports."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
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
from flmarket_sim.cli.output import AUCTION_HELP, BUDGETS_HELP, AsJson, Overrides, TableFile, Wide
from flmarket_sim.cli.results import Compare, print_result, write_result


def probe(
    auctions: Annotated[list[str], typer.Argument(metavar="AUCTION...", help=AUCTION_HELP)],
    scenario: Annotated[Path, typer.Option(help="The market that profiles are drawn from.")],
    profiles: Annotated[int, typer.Option(min=1, help="Markets (at each budget factor).")] = 500,
    budgets: Annotated[str, typer.Option(help=BUDGETS_HELP)] = "uniform",
    effort: Annotated[str, typer.Option(help="quick, standard or exhaustive.")] = "standard",
    seed: Annotated[int, typer.Option(min=0, help="Of the profiles and of the search.")] = 0,
    compare: Compare = None,
    out: TableFile = None,
    figure: FigureFile = None,
    width: FigureWidth = None,
    x_label: XLabel = None,
    y_label: YLabel = None,
    title: FigureTitle = None,
    names: LegendNames = None,
    certify: Annotated[
        bool, typer.Option("--certify", help="Prove an upper bound of every gain, too.")
    ] = False,
    nodes: Annotated[
        int, typer.Option(min=1, help="Boxes of reports to bound for an owner, with --certify.")
    ] = 2_000,
    overrides: Overrides = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Search for the best misreport of every owner: a lower bound on what manipulation gains.

    With --certify, an upper bound stands beside it: no misreport gains more. A Parquet file of one
    auction has the best misreport of every owner, and `flmarket report` makes a page of it.
    """
    from flmarket_sim.results import probe_result
    from flmarket_sim.scenario.scenario_file import load_scenario

    with before_any_result():
        market = load_scenario(scenario, overrides or ())
        style = figure_style(width, x_label, y_label, title, names)
        crew = crew_from(workers, cluster, cluster_options, cluster_wait)
        with ExitStack() as until:
            result = probe_result.probe(
                auctions, market, profiles=profiles, budgets=budgets, effort=effort, seed=seed,
                certify=certify, nodes=nodes, compare=compare, perform=performer(until, crew),
            )  # fmt: skip
            write_result(result, out, figure, style)
            print_result(result, as_json, wide)
