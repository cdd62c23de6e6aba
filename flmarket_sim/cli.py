"""The command line: parse, call, print. Results on stdout, progress on stderr; exit 0 done, 1 failed, 2 wrong input."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from flmarket_sim import registry
from flmarket_sim.errors import DataError, FlmarketError, InputError

app = typer.Typer(
    help="A laboratory for markets of locally private gradients.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Data sets: which there are, whether they are here, and getting them.", no_args_is_help=True)
app.add_typer(data_app, name="data")

stdout, stderr = Console(), Console(stderr=True)

ScenarioFile = Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Override, e.g. auction.name=all-in.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@app.command()
def run(
    scenario: ScenarioFile,
    overrides: Overrides = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Directory for the run; new or empty.")] = None,
    as_json: AsJson = False,
) -> None:
    """Simulate a scenario and write every event to Parquet."""
    from flmarket_sim.market import simulation
    from flmarket_sim.report.summary import render, summarise
    from flmarket_sim.scenario_file import load_scenario

    settings = list(overrides or ()) + ([] if seed is None else [f"seed={seed}"])
    loaded = load_scenario(scenario, settings)
    folder = out or _free_folder(loaded.name, loaded.digest())
    try:
        with _progress(loaded.name) as report:
            finished = simulation.run(loaded, folder, progress=report)
    except KeyboardInterrupt:
        raise FlmarketError(f"interrupted; the log up to here is complete and readable in {folder}") from None
    if as_json:
        _print_json(summarise(finished.path) | {"scenario_sha256": finished.info["scenario_sha256"]})
    else:
        stdout.print(render(finished.path))


@app.command()
def validate(
    scenario: Annotated[Path | None, typer.Argument(metavar="SCENARIO", help="A scenario file (TOML).")] = None,
    overrides: Overrides = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of scenario files instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a scenario: everything that is wrong with it, at once."""
    from flmarket_sim.scenario_file import json_schema, load_scenario

    if schema:
        _print_json(json_schema())
        return
    if scenario is None:
        raise InputError("name a scenario file, or ask for --schema")
    loaded = load_scenario(scenario, overrides or ())
    if as_json:
        _print_json({"scenario": loaded.as_dict(), "sha256": loaded.digest()})
        return
    for buyer in loaded.resolved_buyers():
        stdout.print(
            f"{loaded.name}: {loaded.owners.count:,} owners, {loaded.market.bidders:,} asked a round, "
            f"{loaded.rounds:,} rounds; {buyer.name}: {buyer.auction.name}, {buyer.aggregation.name}, "
            f"model {buyer.model.name}",
            highlight=False,
        )
    stdout.print(f"valid, {loaded.digest()[:12]}", highlight=False)


_LISTED = {
    "auctions": registry.auctions,
    "aggregation": registry.aggregation,
    "datasets": registry.datasets,
    "partitions": registry.partitions,
    "delays": registry.delays,
    "models": registry.models,
}


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(help=f"One of {', '.join(_LISTED)}, scenarios.")],
    as_json: AsJson = False,
) -> None:
    """Names that scenarios can use, and the scenarios that are here."""
    if what == "scenarios":
        rows = _scenarios()
    elif what in _LISTED:
        rows = [_described(_LISTED[what], name) for name in _LISTED[what].names()]
    else:
        raise InputError(f"there is no list of {what!r}; choose one of {', '.join(_LISTED)}, scenarios")
    if as_json:
        _print_json(rows)
        return
    table = Table(box=None, pad_edge=False)
    for head in rows[0] if rows else ():
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    stdout.print(table)


@app.command()
def sql(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    query: Annotated[str, typer.Argument(help="DuckDB SQL; every event kind is a table, 'round' is 'rounds'.")],
    as_json: AsJson = False,
) -> None:
    """Ask a run's log in SQL."""
    from flmarket_sim.eventlog import sql as ask

    found = ask(directory, query)
    if as_json:
        _print_json(found.to_pylist())
        return
    table = Table(*found.column_names, pad_edge=False)
    for row in found.to_pylist():
        table.add_row(*(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()))
    stdout.print(table)


@data_app.command(name="list")
def data_list(as_json: AsJson = False) -> None:
    """All data sets, and where their files were found."""
    from flmarket_sim.learning import files

    rows = []
    for name in registry.datasets.names():
        source = registry.datasets.get(name)
        found = [files.find(source.folder, file) for file in getattr(source, "files", ())]
        where = "built in" if not found else ", ".join(str(path) if path else "missing" for path in found)
        rows.append({"name": name, "where": where, "about": registry.datasets.describe(name)})
    if as_json:
        _print_json(rows)
        return
    table = Table(box=None, pad_edge=False)
    for head in rows[0]:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row.values())
    stdout.print(table)


Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets; all by default.")]


@data_app.command(name="fetch")
def data_fetch(
    names: Names = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Another address to fetch from, up to the last slash.")
    ] = None,
) -> None:
    """Download data sets into the user's cache and check their SHA-256."""
    from flmarket_sim.learning import files

    for name, folder, file in _data_files(names):
        with stderr.status(f"{name}: {file.name}"):
            path = files.fetch(name, folder, file, source)
        stdout.print(f"{name}: {path}", highlight=False, soft_wrap=True)


@data_app.command(name="check")
def data_check(names: Names = None) -> None:
    """Check that data sets are here and are what they should be."""
    from flmarket_sim.learning import files

    problems = []
    for name, folder, file in _data_files(names):
        try:
            path = files.require(name, folder, file)
            files.read(path, file)
            stdout.print(f"{name}: {path} is right", highlight=False, soft_wrap=True)
        except DataError as error:
            problems.append(str(error))
    if problems:
        raise DataError("\n".join(problems))


def _data_files(names: list[str] | None) -> Iterator[tuple[str, str, Any]]:
    for name in names or registry.datasets.names():
        source = registry.datasets.get(name)
        for file in getattr(source, "files", ()):
            yield name, source.folder, file


def _described(known: registry.Registry, name: str) -> dict[str, str]:
    cls = known.get(name)
    skip = 2 if known is registry.models else 0
    options = registry.options_model(cls, skip).model_fields
    row = {"name": name, "about": known.describe(name), "options": ", ".join(options)}
    if hasattr(cls, "guarantees"):
        row["guarantees"] = ", ".join(f"{what.replace('_', ' ')}: {who}" for what, who in cls.guarantees.items())
    return row


def _scenarios() -> list[dict[str, str]]:
    from flmarket_sim.errors import ScenarioError
    from flmarket_sim.scenario_file import load_scenario

    rows = []
    for path in sorted(Path("scenarios").rglob("*.toml")):
        try:
            about = load_scenario(path).description
        except ScenarioError:
            about = "not valid: run 'flmarket validate' on it"
        rows.append({"file": str(path), "about": about})
    if not rows:
        raise InputError("there is no folder 'scenarios' with scenario files here")
    return rows


def _free_folder(name: str, digest: str) -> Path:
    """runs/NAME-HASH, with a number behind it where that is taken."""
    safe = re.sub(r"[^\w.-]+", "-", name)
    base = Path("runs") / f"{safe}-{digest[:8]}"
    folder, number = base, 1
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}.{number}")
    return folder


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(f"{what}: preparing", total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description=f"{what}: rounds")

        yield report


def _print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """JSON has no infinity and no nan: they become text and null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs the command line; what a user can get wrong ends in one clear paragraph."""
    signal.signal(signal.SIGTERM, _interrupt)  # being asked to stop is an interruption: files are completed first
    try:
        app()
    except FlmarketError as error:
        stderr.print(f"flmarket: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except BrokenPipeError:
        sys.exit(1)
