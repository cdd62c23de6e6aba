"""The tables of columns in docs/event-log.md: `python -m docs.kinds` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from flmarket_sim.eventlog.record import Column
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.eventlog.tables import TABLES
from flmarket_sim.eventlog.visibility import PARTIES, seen_by

PAGE = Path(__file__).with_name("event-log.md")
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(<!-- end -->)", re.DOTALL)


def event_kinds() -> str:
    lines = ["| kind | column | type | seen by | meaning |", "|---|---|---|---|---|"]
    for name, columns in KINDS.items():
        kind = (
            f"{name}: {', '.join(f'{sender} to {receiver}' for sender, receiver in PARTIES[name])}"
        )
        for column in columns:
            seen = ", ".join(seen_by(name, column)) or "nobody"
            lines.append(
                f"| {kind} | {column.name} | {_type(column)} | {seen} | {_meaning(column)} |"
            )
            kind = ""
    return "\n".join(lines)


def owner_tables() -> str:
    lines = ["| table | column | type | meaning |", "|---|---|---|---|"]
    for name, columns in TABLES.items():
        table = f"{name}.parquet"
        for column in columns:
            lines.append(f"| {table} | {column.name} | {_type(column)} | {_meaning(column)} |")
            table = ""
    return "\n".join(lines)


def _type(column: Column) -> str:
    return "name" if column.names is not None else str(column.type)


def _meaning(column: Column) -> str:
    return column.meaning + (f" ({', '.join(column.names)})" if column.names else "")


def page(text: str) -> str:
    """The page with its tables as they are now, in the order in which it marks them."""
    made = iter((event_kinds(), owner_tables()))
    return BETWEEN.sub(lambda mark: f"{mark[1]}{next(made)}\n{mark[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
