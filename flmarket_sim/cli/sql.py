"""`flmarket sql`: query the log of a run."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from flmarket_sim.cli.output import (
    AsJson,
    TableFile,
    Wide,
    print_json,
    print_table,
    print_text,
    save_arrow,
)


def sql(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run.")],
    query: Annotated[
        str, typer.Argument(help="DuckDB SQL; every event kind is a table, 'round' is 'rounds'.")
    ],
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe",
            help="Allow everything that DuckDB can do: read and write any file, load extensions, "
            "connect to a network.",
        ),
    ] = False,
    wide: Wide = False,
    table: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Query the log of a run in SQL. The query reads this run and no other file."""
    from flmarket_sim.eventlog import sql as ask
    from flmarket_sim.storage.untrusted_files import rows_of

    answer = ask(directory, query, unsafe=unsafe)
    names = _unique(answer.column_names)
    save_arrow(answer.rename_columns(names), table)
    if as_json:
        print_json(rows_of("the answer", answer))
        return
    found = rows_of("the answer", answer.rename_columns(names))
    rows = [{name: _cell(value) for name, value in row.items()} for row in found]
    print_table(rows or [dict.fromkeys(names)], names, wide)
    if not rows:
        print_text("no rows")


def _cell(value: Any) -> Any:
    """A value with the digits that somebody who asks in SQL expects: six."""
    if isinstance(value, float | Decimal):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(str(_cell(each)) for each in value)}]"
    return value


def _unique(names: list[str]) -> list[str]:
    """Column names, told apart by a number where a query gives one name twice."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return made
