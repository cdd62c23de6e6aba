"""`flmarket evaluate`: compare auctions on the same markets."""

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
    DifferencesFile,
    FigureFile,
    FigureTitle,
    FigureWidth,
    LegendNames,
    XLabel,
    YLabel,
    figure_style,
)
from flmarket_sim.cli.output import (
    AUCTION_HELP,
    BUDGETS_HELP,
    AsJson,
    Overrides,
    TableFile,
    Wide,
    print_note,
)
from flmarket_sim.cli.results import Compare, print_result, write_result


def evaluate(
    auctions: Annotated[list[str], typer.Argument(metavar="AUCTION...", help=AUCTION_HELP)],
    scenario: Annotated[Path, typer.Option(help="The market that profiles are drawn from.")],
    rule: Annotated[str, typer.Option(help="Aggregation rule.")] = "opt-aggr",
    budgets: Annotated[str, typer.Option(help=BUDGETS_HELP)] = "0.1:2.0:0.1",
    profiles: Annotated[int, typer.Option(min=2, help="Markets at each budget factor.")] = 1000,
    regret: Annotated[
        int, typer.Option(min=0, help="Markets of them to search for lies; 0: none.")
    ] = 0,
    floor: Annotated[
        int,
        typer.Option(min=0, help="Markets of them to compare with the second-best floor; 0: none."),
    ] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    compare: Compare = None,
    out: TableFile = None,
    figure: FigureFile = None,
    difference_figure: DifferencesFile = None,
    width: FigureWidth = None,
    x_label: XLabel = None,
    y_label: YLabel = None,
    title: FigureTitle = None,
    names: LegendNames = None,
    overrides: Overrides = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Compare auctions on the same markets.

    The table has error, spending, individual rationality and regret, and the error over two
    yardsticks: first-best, the best purchase found at true valuations, and the floor, below which
    no truthful mechanism can be (docs/second-best.md). Of several auctions, errors are also
    compared market by market, with intervals that hold for all comparisons together.
    """
    from flmarket_sim.results import evaluation_result
    from flmarket_sim.scenario.scenario_file import load_scenario

    with before_any_result():
        market = load_scenario(scenario, overrides or ())
        style = figure_style(width, x_label, y_label, title, names)
        crew = crew_from(workers, cluster, cluster_options, cluster_wait)
        with ExitStack() as until:
            result = evaluation_result.evaluate(
                auctions, market, budgets=budgets, profiles=profiles, rule=rule, regret=regret,
                floor=floor, seed=seed, compare=compare, perform=performer(until, crew),
            )  # fmt: skip
            write_result(result, out, figure, style)
            if difference_figure is not None:
                result.plot_differences(difference_figure, style)
                print_note(f"the figure of differences is in {difference_figure}")
            print_result(result, as_json, wide)
