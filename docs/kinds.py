"""The table of event kinds in docs/event-log.md: `python -m docs.kinds` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.eventlog.visibility import PARTIES, seen_by

PAGE = Path(__file__).with_name("event-log.md")
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(\n<!-- end -->)", re.DOTALL)


def table() -> str:
    lines = ["| kind | column | type | seen by | meaning |", "|---|---|---|---|---|"]
    for name, columns in KINDS.items():
        kind = (
            f"{name}: {', '.join(f'{sender} to {receiver}' for sender, receiver in PARTIES[name])}"
        )
        for column in columns:
            column_type = "name" if column.names is not None else str(column.type)
            values = f" ({', '.join(column.names)})" if column.names else ""
            seen = ", ".join(seen_by(name, column)) or "nobody"
            lines.append(
                f"| {kind} | {column.name} | {column_type} | {seen} | {column.meaning}{values} |"
            )
            kind = ""
    return "\n".join(lines)


def page(text: str) -> str:
    return BETWEEN.sub(lambda mark: mark[1] + table() + mark[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
