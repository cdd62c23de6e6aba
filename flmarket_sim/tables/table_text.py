"""Rows as text with aligned columns that fits a terminal, or as an HTML table.

Names are never markup. A number is never broken over two lines: a column that does not fit is left
out, and a long name is cut.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from flmarket_sim.tables.cells import Row, cell_of, head_of, shown_columns

GAP = 2  # spaces between two columns
SHORTEST_NAME = 12  # characters that are left of a text that must give way
LONGEST_CUT = 30  # characters of texts that are told apart by their ends only
_ONE = r"-?(?:\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|inf)%?"
HELD = "\0"  # a space at which no line is broken
TOGETHER = re.compile(rf"{_ONE}(?: \[{_ONE}, {_ONE}\]| %)")
NUMBER = re.compile(rf"{_ONE}(?: \[{_ONE}, {_ONE}\])?")  # also an estimate with its interval


@dataclass(frozen=True)
class FittedText:
    """A table as text, and the columns that did not fit."""

    text: str
    left_out: tuple[str, ...]


def as_text(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """All columns under their heads, numbers to the right, as wide as they are."""
    return fitted(rows, columns, None).text


def fitted(
    rows: Sequence[Row], columns: Sequence[str] = (), width: int | None = None
) -> FittedText:
    """Columns under their heads in at most `width` characters; numbers to the right.

    Where they do not fit, heads take several lines, and texts give way down to 12 characters. Then
    columns are left out from the right. The first column always stays.
    """
    names = shown_columns(list(columns) or list(rows[0] if rows else []))
    every = [_Column.of(name, [cell_of(row, name) for row in rows]) for name in names]
    kept = list(every)
    if width is not None:
        while len(kept) > 1 and _total([column.least for column in kept]) > width:
            kept.pop()
    widths = _widths(kept, width)
    heads = [textwrap.wrap(c.head, w) or [""] for c, w in zip(kept, widths, strict=True)]
    tallest = max(map(len, heads), default=1)
    lines = [
        list(line) for line in zip(*([""] * (tallest - len(h)) + h for h in heads), strict=True)
    ]
    lines += [[column.cells[k] for column in kept] for k in range(len(rows))]
    text = "\n".join(
        (" " * GAP)
        .join(
            column.aligned(_cut(cell, width), width)
            for column, cell, width in zip(kept, line, widths, strict=True)
        )
        .rstrip()
        for line in lines
    )
    return FittedText(text, tuple(names[len(kept) :]))


def wrapped(text: str, width: int) -> str:
    """Sentences in lines of at most `width` characters; an interval and its estimate stay whole."""
    held = TOGETHER.sub(lambda found: found.group().replace(" ", HELD), text)
    lines = (
        textwrap.wrap(
            line,
            width,
            subsequent_indent="  " if line.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        or [""]
        for line in held.split("\n")
    )
    return "\n".join(line for part in lines for line in part).replace(HELD, " ")


def as_html(rows: Sequence[Row], columns: Sequence[str] = ()) -> str:
    """A bare HTML table."""
    names = shown_columns(list(columns) or list(rows[0] if rows else []))
    head = "".join(f"<th>{html.escape(head_of(name))}</th>" for name in names)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(cell_of(row, name))}</td>" for name in names)
        + "</tr>\n"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"


@dataclass(frozen=True)
class _Column:
    """A column of cells.

    `least` is the width at which its numbers and its head are whole and its texts differ, and
    `shortest` that at which texts may look alike.
    """

    head: str
    cells: list[str]
    right: bool
    body: int  # width of its cells
    least: int
    shortest: int

    @classmethod
    def of(cls, name: str, cells: list[str]) -> _Column:
        head = head_of(name)
        numbers = [cell for cell in cells if NUMBER.fullmatch(cell)]
        texts = [cell for cell in cells if cell and not NUMBER.fullmatch(cell)]
        longest_text = max(map(len, texts), default=0)
        whole = max(*map(len, ["", *numbers]), *map(len, head.split() or [""]))
        shortest = max(whole, min(longest_text, SHORTEST_NAME))
        least = max(whole, _told_apart(texts))
        right = longest_text <= SHORTEST_NAME and len(numbers) > len(texts)
        return cls(head, cells, right or not texts, max(map(len, ["", *cells])), least, shortest)

    def aligned(self, cell: str, width: int) -> str:
        return cell.rjust(width) if self.right else cell.ljust(width)


def _told_apart(texts: Sequence[str]) -> int:
    """The least width, of 12 to 30 characters, at which texts that differ still differ."""
    longest, distinct = max(map(len, texts), default=0), set(texts)
    for width in range(SHORTEST_NAME, min(longest, LONGEST_CUT)):
        if len({_cut(text, width) for text in distinct}) == len(distinct):
            return width
    return min(longest, LONGEST_CUT)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _widths(columns: Sequence[_Column], width: int | None) -> list[int]:
    """The width of each column: heads give way first, then the widest cells."""
    widths = [max(len(column.head), column.body) for column in columns]
    if width is None:
        return widths
    narrow = [max(column.body, column.least) for column in columns]
    least, shortest = (
        [getattr(column, name) for column in columns] for name in ("least", "shortest")
    )
    for goal in (narrow, least, shortest):
        while _total(widths) > width:
            spare = [k for k in range(len(widths)) if widths[k] > goal[k]]
            if not spare:
                break
            widths[max(spare, key=lambda k: widths[k])] -= 1
    return widths


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
