"""`flmarket evaluate`: compare auctions on the same markets."""

from __future__ import annotations

from pathlib import Path
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
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    print_json,
    print_regime_notes,
    print_text,
    stdout,
)


def evaluate(
    auctions: Annotated[
        list[str], typer.Argument(metavar="AUCTION...", help="NAME, NAME@WEIGHTS or module:Class.")
    ],
    scenario: Annotated[Path, typer.Option(help="The market that profiles are drawn from.")],
    rule: Annotated[str, typer.Option(help="Aggregation rule.")] = "opt-aggr",
    budgets: Annotated[
        str,
        typer.Option(help="Budget factors: low:high:step, one number, or 'uniform' in [0.1, 2]."),
    ] = "0.1:2.0:0.1",
    profiles: Annotated[int, typer.Option(min=2, help="Markets at each budget factor.")] = 1000,
    regret: Annotated[
        int, typer.Option(min=0, help="Markets of them to search for lies; 0: none.")
    ] = 0,
    floor: Annotated[
        int,
        typer.Option(min=0, help="Markets of them to compare with the second-best floor; 0: none."),
    ] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Also draw the error bounds (.png, .svg or .pdf).")
    ] = None,
    overrides: Overrides = None,
    workers: Workers = None,
    cluster: Cluster = None,
    cluster_options: ClusterOptions = None,
    cluster_wait: ClusterWait = 300.0,
    as_json: AsJson = False,
) -> None:
    """Compare auctions on the same markets.

    The table has error, spending, individual rationality and regret, and the error over two
    yardsticks: first-best, the best purchase found at true valuations, and the floor, below which
    no truthful mechanism can be (docs/second-best.md).
    """
    from flmarket_sim import aggregation
    from flmarket_sim.auctions import named
    from flmarket_sim.report import evaluation_table as report
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks, scores

    mechanisms = [named(auction) for auction in auctions]
    aggregation.create(rule)
    market = load_scenario(scenario, overrides or ())
    factors = report.factors(budgets)
    distinct = list(dict.fromkeys(auctions))
    tasks = evaluation_tasks(distinct, market, factors, profiles, rule, regret, seed, floor)
    counted = tasks[0].error
    print_regime_notes(mechanisms, counted.error())
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    with task_results("evaluate", tasks, evaluate, crew) as results:
        rows = scores(tasks, results)
        if figure is not None:
            report.draw(rows, figure)
        if as_json:
            print_json([score.as_dict() for score in rows])
        else:
            stdout.print(report.table(rows))
            print_text(counted.sentence())
            if floor:
                print_text(report.floor_sentence(rows))
