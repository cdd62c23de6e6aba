"""The table of event kinds in docs/event-log.md, made from the schema: `python -m docs.kinds` writes it anew."""

from __future__ import annotations

import re
from pathlib import Path

from flmarket_sim.eventlog.schema import KINDS

PAGE = Path(__file__).with_name("event-log.md")
BETWEEN = re.compile(r"(<!-- made by:.*?-->\n).*?(\n<!-- end -->)", re.DOTALL)


def table() -> str:
    lines = ["| kind | column | type | meaning |", "|---|---|---|---|"]
    for kind, columns in KINDS.items():
        for column in columns:
            shown = "name" if column.names is not None else str(column.type)
            values = f" ({', '.join(column.names)})" if column.names else ""
            lines.append(f"| {kind} | {column.name} | {shown} | {column.meaning}{values} |")
            kind = ""
    return "\n".join(lines)


def page(text: str) -> str:
    return BETWEEN.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
