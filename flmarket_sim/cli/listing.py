"""`flmarket list`: the names that a scenario can use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import AsJson, print_json, print_rows
from flmarket_sim.errors import InputError
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.options import options_model
from flmarket_sim.plugins.plugin_kind import PluginKind


def list_(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(registry.LISTS)}, scenarios.")],
    as_json: AsJson = False,
) -> None:
    """List the plug-ins of a kind with their options, or scenarios.

    Scenarios are those of the folder scenarios/ here, or else those that come with flmarket.
    """
    if what == "scenarios":
        rows = _scenarios()
    elif what in registry.LISTS:
        rows = [_described(registry.LISTS[what], name) for name in registry.LISTS[what].names()]
    else:
        raise InputError(
            f"there is no list of {what!r}; choose one of {', '.join(registry.LISTS)}, scenarios"
        )
    if as_json:
        print_json(rows)
        return
    print_rows(rows)


def _described(known: PluginKind, name: str) -> dict[str, str]:
    cls = known.get(name)
    options = options_model(cls, known.facts).model_fields
    row = {"name": name, "about": known.describe(name), "options": ", ".join(options)}
    if known is registry.auctions:
        row["guarantees"] = ", ".join(
            f"{what.replace('_', ' ')}: {who}" for what, who in cls.guarantees.items()
        )
    return row


def _scenarios() -> list[dict[str, str]]:
    from flmarket_sim.errors import ScenarioError
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.scenario.shipped import scenario_names

    here = [str(path) for path in sorted(Path("scenarios").rglob("*.toml"))]
    rows = []
    for name in here or scenario_names():
        try:
            about = load_scenario(name).description
        except ScenarioError:
            about = "not valid: run 'flmarket validate' on it"
        rows.append({"scenario": name, "about": about})
    return rows
