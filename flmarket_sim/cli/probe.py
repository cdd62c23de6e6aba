"""`flmarket probe`: how much owners gain by misreports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    progress,
    stdout,
)
from flmarket_sim.errors import InputError

if TYPE_CHECKING:
    from flmarket_sim.auctions import Auction
    from flmarket_sim.strategy.certified.certified_gain import CertifiedGain
    from flmarket_sim.strategy.misreports import Floats
    from flmarket_sim.strategy.probe import Probe


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
        Path | None,
        typer.Option(help="Write the best misreport of every owner to this Parquet file."),
    ] = None,
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
    as_json: AsJson = False,
) -> None:
    """Search for the best misreport of every owner: a lower bound on what manipulation gains.

    With --certify, an upper bound stands beside it: no misreport gains more.
    """
    from flmarket_sim.auctions import auction_in, named
    from flmarket_sim.auctions.auction import check_budget
    from flmarket_sim.owners.population import draw_markets
    from flmarket_sim.perturbation.scenario_error import error_settings
    from flmarket_sim.report.evaluation_table import factors
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.strategy.probe_file import write_probe
    from flmarket_sim.strategy.search_effort import effort_of
    from flmarket_sim.studies.probe_tasks import merged_probe, probe_tasks, search_markets

    mechanism = named(auction)
    effort_of(effort)
    if out is not None and out.is_dir():
        raise InputError(f"{out} is a directory; --out names a Parquet file")
    market = load_scenario(scenario, overrides or ())
    levels, counted = market.market.levels, error_settings(market)
    print_regime_notes([mechanism], counted.error())
    truth, factor = draw_markets(market, profiles, factors(budgets), seed)
    money = check_budget(truth.bids(levels), factor * truth.total_value())
    tasks = probe_tasks(
        auction, truth, money, seed=seed, effort=effort, levels=levels, error=counted
    )
    crew = crew_from(workers, cluster, cluster_options, cluster_wait)
    facts = {
        "auction": auction,
        "scenario": market.name,
        "scenario_sha256": market.digest(),
        "effort": effort,
    }
    with task_results("probe", tasks, search_markets, crew, "chunks of markets") as results:
        probe = merged_probe(
            auction, truth, money, results, seed=seed, levels=levels, error=counted
        )
        if out is not None:
            write_probe(probe, out, facts)
        proved = None
        if certify:
            there = auction_in(mechanism, counted.error())
            proved = _certified(there, probe, money, levels, nodes, seed)
        _print(probe, facts, None if budgets == "uniform" else factor, out, as_json, proved)


def _certified(
    auction: Auction, probe: Probe, money: Floats, levels: int, nodes: int, seed: int
) -> CertifiedGain:
    """Upper bounds beside the probe's lower bounds, with a progress bar."""
    from flmarket_sim.strategy.certified.box_search import BoxEffort
    from flmarket_sim.strategy.certified.certified_gain import certified_gain

    with progress("certify", "owners") as report:
        return certified_gain(
            auction, probe.truth, money, levels=levels, effort=BoxEffort(nodes=nodes),
            known=probe.best_utility, seed=seed, progress=report,
        )  # fmt: skip


def _print(
    probe: Probe,
    facts: dict[str, Any],
    factor: Floats | None,
    out: Path | None,
    as_json: bool,
    proved: CertifiedGain | None,
) -> None:
    """The probe as a table or JSON, with a part for each budget factor if these were given."""
    from flmarket_sim.auctions.auction_name import AuctionName
    from flmarket_sim.report import certified_table
    from flmarket_sim.report import probe_tables as report

    if as_json:
        shown: dict[str, Any] = facts | report.summary(probe)
        if factor is not None:
            shown["by_budget"] = report.by_budget(probe, factor)
        shown["best_lies"] = report.best_lies(probe)
        if proved is not None:
            shown["certified"] = certified_table.summary(probe, proved)
        print_json(shown)
        return
    stdout.print(report.render(AuctionName.parse(facts["auction"]).label, probe, factor))
    if proved is not None:
        stdout.print(certified_table.render(probe, proved))
    if out is not None:
        print_text(f"the best misreport of every owner is in {out}")
