"""`flmarket list`: the names that a scenario can use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flmarket_sim.cli.output import (
    AsJson,
    TableFile,
    Wide,
    print_entries,
    print_json,
    print_next_steps,
    print_table,
    save_table,
)
from flmarket_sim.errors import InputError, did_you_mean
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.foreign_code import NOT_LOOKED_AT, ForeignCodeRefused, policy
from flmarket_sim.plugins.options import options_model
from flmarket_sim.plugins.plugin_kind import PluginKind

SCENARIOS = "scenarios"
SINGULAR = dict(zip(registry.KINDS, registry.LISTS, strict=True)) | {"scenario": SCENARIOS}


def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            help=f"One of {', '.join(registry.LISTS)}, {SCENARIOS}; all lists by default."
        ),
    ] = None,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """List the plug-ins of a kind with their options, or scenarios.

    Scenarios are those of the folder scenarios/ here, or else those that come with flmarket.
    """
    rows = _lists() if what is None else _entries(SINGULAR.get(what, what))
    save_table(rows, table)
    if as_json:
        print_json(rows)
    elif wide:
        print_table(rows, wide=True)
    else:
        print_entries(rows)
    if what is None and not as_json:
        print_next_steps("flmarket list auctions", "flmarket run quickstart")


def _lists() -> list[dict[str, str]]:
    """Every list, how long it is, and its names."""
    names = {plural: kind.names() for plural, kind in registry.LISTS.items()}
    names[SCENARIOS] = _scenario_names()
    return [{"list": f"{key} ({len(of)})", "names": ", ".join(of)} for key, of in names.items()]


def _entries(what: str) -> list[dict[str, str]]:
    if what == SCENARIOS:
        return _scenarios()
    if what in registry.LISTS:
        return [_described(registry.LISTS[what], name) for name in registry.LISTS[what].names()]
    known = [*registry.LISTS, SCENARIOS]
    hint = did_you_mean(what, known, f"; choose one of {', '.join(known)}")
    raise InputError(f"there is no list of {what!r}{hint}")


def _described(known: PluginKind, name: str) -> dict[str, str]:
    try:
        cls = known.get(name)
    except ForeignCodeRefused:
        return {"name": name, "about": NOT_LOOKED_AT, "options": ""}
    options = options_model(cls, known.facts).model_fields
    row = {"name": name, "about": known.describe(name), "options": ", ".join(options)}
    if known is registry.auctions:
        row["guarantees"] = ", ".join(
            f"{what.replace('_', ' ')}: {who}" for what, who in cls.guarantees.items()
        )
    return row


def _scenario_names() -> list[str]:
    from flmarket_sim.scenario.shipped import scenario_names

    here = [str(path) for path in sorted(Path("scenarios").rglob("*.toml"))]
    return here or list(scenario_names())


def _scenarios() -> list[dict[str, str]]:
    from flmarket_sim.errors import ScenarioError
    from flmarket_sim.scenario.scenario_file import load_scenario

    rows = []
    for name in _scenario_names():
        policy.refused.clear()
        try:
            about = load_scenario(name).description
        except ScenarioError:
            invalid = "not valid: run 'flmarket validate' on it"
            about = f"{NOT_LOOKED_AT}: {policy.refused[0]}" if policy.refused else invalid
        rows.append({"scenario": name, "about": about})
    return rows
