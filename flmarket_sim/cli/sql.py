"""`flmarket sql`: query the log of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from flmarket_sim.cli.output import AsJson, print_json, stdout


def sql(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    query: Annotated[
        str, typer.Argument(help="DuckDB SQL; every event kind is a table, 'round' is 'rounds'.")
    ],
    as_json: AsJson = False,
) -> None:
    """Query the log of a run in SQL."""
    from flmarket_sim.eventlog import sql as ask

    answer = ask(directory, query)
    if as_json:
        print_json(answer.to_pylist())
        return
    table = Table(*answer.column_names, pad_edge=False)
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*(Text(f"{v:.6g}" if isinstance(v, float) else str(v)) for v in row))
    stdout.print(table)
