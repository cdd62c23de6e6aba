"""`flmarket data`: list, fetch and check data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.output import AsJson, print_json, print_rows, print_text, stderr
from flmarket_sim.errors import DataError
from flmarket_sim.plugins import registry

app = typer.Typer(help="List, fetch and check data sets.", no_args_is_help=True, **LOOK)


@app.command(name="list")
def data_list(as_json: AsJson = False) -> None:
    """List all data sets and the places of their files."""
    from flmarket_sim.learning import data_files

    rows = []
    for name in registry.datasets.names():
        source = registry.datasets.get(name)
        where = "built in"
        if isinstance(source, data_files.FileSource):
            paths = [data_files.find(source.folder, file) for file in source.files]
            where = ", ".join(str(path) if path else "missing" for path in paths)
        rows.append({"name": name, "where": where, "about": registry.datasets.describe(name)})
    if as_json:
        print_json(rows)
        return
    print_rows(rows)


Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets; all by default.")
]


@app.command(name="fetch")
def data_fetch(
    names: Names = None,
    source: Annotated[
        str | None,
        typer.Option("--from", help="Another address to fetch from, up to the last slash."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download data sets into the user's cache and check their SHA-256."""
    from flmarket_sim.learning import data_files

    got = []
    for name, folder, file in _data_files(names):
        with stderr.status(f"{name}: {file.name}"):
            got.append({"name": name, "file": str(data_files.fetch(name, folder, file, source))})
        if not as_json:
            print_text(f"{name}: {got[-1]['file']}")
    if as_json:
        print_json(got)


@app.command(name="check")
def data_check(names: Names = None, as_json: AsJson = False) -> None:
    """Check that data sets are here and are what they should be."""
    from flmarket_sim.learning import data_files

    problems, right = [], []
    for name, folder, file in _data_files(names):
        try:
            path = data_files.require(name, folder, file)
            data_files.read(path, file)
            right.append({"name": name, "file": str(path)})
            if not as_json:
                print_text(f"{name}: {path} is right")
        except DataError as error:
            problems.append(str(error))
    if as_json:
        print_json({"right": right, "problems": problems})
    if problems:
        raise DataError("\n".join(problems))


def _data_files(names: list[str] | None) -> Iterator[tuple[str, str, Any]]:
    from flmarket_sim.learning.data_files import FileSource

    for name in names or registry.datasets.names():
        source = registry.datasets.get(name)
        for file in source.files if isinstance(source, FileSource) else ():
            yield name, source.folder, file
