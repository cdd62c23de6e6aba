"""`flmarket flower`: markets with real federated clients, through Flower."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.output import (
    AsJson,
    Overrides,
    Wide,
    print_next_steps,
    print_note,
    print_text,
    progress,
)
from flmarket_sim.cli.resume import show_run
from flmarket_sim.cli.run import ScenarioFile
from flmarket_sim.errors import InputError, Interrupted

app = typer.Typer(
    help="Hold a market with real federated clients, through Flower.", no_args_is_help=True, **LOOK
)


@app.command()
def new(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty directory.")],
) -> None:
    """Write a project for `flwr run`, with a place for one's own model and data."""
    from flmarket_sim.flower.project import new_project

    for path in new_project(directory):
        print_text(path)
    place = shlex.quote(str(directory))
    print_next_steps(f"less {place}/README.md")


@app.command()
def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the run: new or empty, or one of a run that was stopped, which "
            "continues."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Processes for the owners; by default one for each core."),
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Hold a scenario's market with its owners as real clients on this machine: a first try."""
    from flmarket_sim.flower.local_market import run_locally
    from flmarket_sim.scenario.scenario_file import load_scenario
    from flmarket_sim.storage.result_folders import free_folder

    loaded = load_scenario(
        scenario, [*(overrides or ()), *([] if seed is None else [f"seed={seed}"])]
    )
    if loaded.repeatable:
        print_note(
            "The scenario's noise can be repeated, which is right for a try and not for a release "
            "(privacy.noise)"
        )
    folder = out or free_folder(f"{loaded.name}-flower", loaded.digest())
    try:
        with progress(loaded.name) as report:
            finished = run_locally(loaded, folder, report, processes)
    except KeyboardInterrupt:
        options = [word for one in overrides or () for word in ("--set", one)]
        options += [] if seed is None else ["--seed", str(seed)]
        options += [] if processes is None else ["--processes", str(processes)]
        words = ["flmarket", "flower", "run", str(scenario), *options, "--out", str(folder)]
        again = shlex.join(words)
        raise Interrupted(
            f"interrupted; the log up to here is readable in {folder}, and `{again}` goes on"
        ) from None
    show_run(finished, wide, None, as_json)


@app.command()
def join(
    superlink: Annotated[str, typer.Argument(metavar="ADDRESS", help="The SuperLink: HOST:PORT.")],
    client: Annotated[
        str, typer.Argument(metavar="MODULE:APP", help="The client's app, on this machine.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the node, for the client."),
    ] = None,
    root_certificates: Annotated[
        Path | None,
        typer.Option(help="Certificates (PEM) by which to know the SuperLink; else no encryption."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="The node's private key, for a SuperLink that knows its nodes."),
    ] = None,
) -> None:
    """Take part in a market as one owner, until Ctrl-C."""
    from flmarket_sim.flower.client import try_out
    from flmarket_sim.flower.fleet import Link
    from flmarket_sim.flower.resident_node import read_certificates, read_keys, stay
    from flmarket_sim.plugins.plugin_files import attribute_of

    table: dict[str, Any] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not name or not equals:
            raise InputError(f"--set {setting!r} must be KEY=VALUE")
        table[name] = value
    loaded = attribute_of(client, "the client's app")
    try_out(loaded, table)
    link = Link(superlink, read_certificates(root_certificates), read_keys(key))
    print_note(f"Taking part at {superlink} until Ctrl-C")
    stay(link, loaded, table, threading.Event())


@app.command()
def view(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="An owner's own folder.")],
    out: Annotated[Path, typer.Option(help="A new or empty directory.")],
    run: Annotated[
        str | None, typer.Option(help="One of her runs by name; by default the latest.")
    ] = None,
) -> None:
    """Write an owner's own view of a run from her ledger, as Parquet."""
    from flmarket_sim.flower.own_view import write_own_view

    info = write_own_view(folder, out, run)
    print_text(f"{info['log']['events']:,} events of {info['view']} are in {out}")
    place = shlex.quote(str(out))
    print_next_steps(f'flmarket sql {place} "SELECT round, privacy_loss FROM gradient"')
