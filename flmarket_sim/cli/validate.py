"""`flmarket validate`: check a scenario file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    TableFile,
    Wide,
    print_json,
    print_next_steps,
    print_note,
    print_table,
    print_text,
    save_table,
)
from flmarket_sim.errors import InputError


def validate(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")
    ] = None,
    overrides: Overrides = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of scenario files instead.")
    ] = False,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Check a scenario and report everything that is wrong with it."""
    from flmarket_sim.market.market_warnings import scenario_warnings
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
    policies = ("auction", "aggregation", "perturbation", "model")
    buyers = [
        {"buyer": buyer.name} | {name: getattr(buyer, name).name for name in policies}
        for buyer in loaded.resolved_buyers()
    ]
    save_table(buyers, table)
    warnings = scenario_warnings(loaded)
    if as_json:
        found = {"scenario": loaded.as_dict(), "sha256": loaded.digest()}
        print_json(found | ({"warnings": warnings} if warnings else {}))
        return
    print_text(
        f"{loaded.name}: {loaded.owners.count:,} owners, "
        f"{loaded.market.bidders:,} asked a round, {loaded.rounds:,} rounds"
    )
    print_table(buyers, wide=wide)
    print_text(f"valid, {loaded.digest()[:12]}")
    for text in warnings:
        print_note(f"Warning: {text}")
    where = shlex.quote(str(scenario))
    command = "study" if loaded.study is not None else "sweep" if has_sweep(scenario) else "run"
    print_next_steps(f"flmarket {command} {where}{_repeated(overrides)}")


def _repeated(overrides: list[str] | None) -> str:
    return "".join(f" --set {shlex.quote(override)}" for override in overrides or ())
