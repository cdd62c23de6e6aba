"""`flmarket validate`: check a scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, Overrides, print_json, print_text
from flmarket_sim.errors import InputError


def validate(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")
    ] = None,
    overrides: Overrides = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of scenario files instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a scenario and report everything that is wrong with it."""
    from flmarket_sim.scenario.scenario_file import json_schema, load_scenario
    from flmarket_sim.sweep.sweep_plan import has_sweep, load_sweep

    if schema:
        print_json(json_schema())
        return
    if scenario is None:
        raise InputError("name a scenario file, or ask for --schema")
    loaded = load_scenario(scenario, overrides or ())
    if has_sweep(scenario):
        load_sweep(scenario, overrides or ())
    if as_json:
        print_json({"scenario": loaded.as_dict(), "sha256": loaded.digest()})
        return
    for buyer in loaded.resolved_buyers():
        print_text(
            f"{loaded.name}: {loaded.owners.count:,} owners, "
            f"{loaded.market.bidders:,} asked a round, {loaded.rounds:,} rounds; "
            f"{buyer.name}: {buyer.auction.name}, {buyer.aggregation.name}, "
            f"model {buyer.model.name}"
        )
    print_text(f"valid, {loaded.digest()[:12]}")
