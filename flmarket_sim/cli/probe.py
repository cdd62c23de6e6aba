"""`flmarket probe`: how far an auction can be lied to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from flmarket_sim.cli.output import AsJson, Overrides, print_json, progress, stdout
from flmarket_sim.errors import InputError


def probe(
    auction: Annotated[
        str, typer.Argument(metavar="AUCTION", help="NAME, NAME@WEIGHTS or module:Class.")
    ],
    scenario: Annotated[Path, typer.Option(help="The market that profiles are drawn from.")],
    profiles: Annotated[int, typer.Option(min=1, help="Markets (at each budget factor).")] = 500,
    budgets: Annotated[
        str,
        typer.Option(help="Budget factors: low:high:step, one number, or 'uniform' in [0.1, 2]."),
    ] = "uniform",
    effort: Annotated[str, typer.Option(help="quick, standard or exhaustive.")] = "standard",
    seed: Annotated[int, typer.Option(min=0, help="Of the profiles and of the search.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Keep every owner's best lie in this Parquet file.")
    ] = None,
    overrides: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Find the best lie of every owner: a lower bound on how far an auction can be manipulated."""
    from flmarket_sim.auctions import named
    from flmarket_sim.owners.population import draw_markets
    from flmarket_sim.report import probe_tables as report
    from flmarket_sim.report.evaluation_table import factors, label
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.strategy.probe import probe as search
    from flmarket_sim.strategy.probe_file import write_probe
    from flmarket_sim.strategy.search_effort import effort_of

    made: Any = named(auction)
    effort_of(effort)
    if out is not None and out.is_dir():
        raise InputError(f"{out} is a directory; --out names a Parquet file")
    market = load_scenario(scenario, overrides or ())
    truth, factor = draw_markets(market, profiles, factors(budgets), seed)
    with progress(f"probe {label(auction)}", "owners") as tell:
        found = search(
            made,
            truth,
            factor * truth.total_value(),
            seed=seed,
            effort=effort,
            levels=market.market.levels,
            progress=tell,
        )
    facts = {
        "auction": auction,
        "scenario": market.name,
        "scenario_sha256": market.digest(),
        "effort": effort,
    }
    if out is not None:
        write_probe(found, out, facts)
    distinct = None if budgets == "uniform" else factor
    if as_json:
        shown: dict[str, Any] = facts | report.summary(found)
        if distinct is not None:
            shown["by_budget"] = report.by_budget(found, distinct)
        shown["best_lies"] = report.best_lies(found)
        print_json(shown)
        return
    stdout.print(report.render(label(auction), found, distinct))
    if out is not None:
        stdout.print(
            f"every owner's best lie is in {out}", highlight=False, markup=False, soft_wrap=True
        )
