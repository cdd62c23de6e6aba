"""Numbers on pages that come from stored results: `python -m docs.page_numbers` writes them anew.

A page has five kinds of marks, all of them comments that a reader does not see:

    <!--= EXPRESSION -->TEXT<!--/-->      the value of the expression replaces the text
    <!--? EXPRESSION -->                  a sentence beside it is true only if this holds
    <!-- made by: COMMAND -->             a table of its own command, up to <!-- end -->
    <!-- measured by: COMMAND -->         numbers that differ from run to run (times, histories of
                                          trainings), up to <!-- end -->
    <!-- given: SOURCE -->                numbers of another source (the paper, a prototype), up to
                                          <!-- end -->

Expressions use the functions below on stored results: docs/findings/NAME.json,
docs/reproduction/NAME.csv and docs/numbers/NAME.json, and "league" for the entries of the league,
a row for each market and one over the "whole card". A test checks that all pages are current,
that every condition holds, and that no measured number stands outside a mark.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from flmarket_sim.league import entries
from flmarket_sim.league.league_rows import WHOLE

HERE = Path(__file__).parent
FOLDERS = (HERE / "findings", HERE / "reproduction", HERE / "numbers")
VALUE = re.compile(r"(<!--= (.+?) -->)(.*?)(<!--/-->)", re.DOTALL)
CONDITION = re.compile(r"<!--\? (.+?) -->", re.DOTALL)
BLOCK = re.compile(r"<!-- (?:made by|measured by|given):.*?<!-- end -->", re.DOTALL)
Row = dict[str, Any]


class FalseSentence(Exception):
    """A condition of a page does not hold for the stored results, or cannot be computed."""


@lru_cache(maxsize=64)
def _stored(source: str) -> tuple[Row, ...]:
    for folder in FOLDERS:
        if (path := folder / f"{source}.json").exists():
            facts = json.loads(path.read_text())
            return tuple(facts["rows"] if isinstance(facts, dict) else facts)
        if (path := folder / f"{source}.csv").exists():
            with path.open() as file:
                return tuple(
                    {key: _number(text) for key, text in row.items()}
                    for row in csv.DictReader(file)
                )
    if source == "league":
        return tuple(_league())
    raise KeyError(f"no stored results {source!r}")


def _league() -> list[Row]:
    found: list[Row] = []
    for entry in entries.shipped_entries():
        name = {"auction": entry["auction"].partition("@")[0]}
        found.append(name | {"market": WHOLE, "place": entry["place"]} | entry["whole"])
        found += [name | {"market": market} | row for market, row in entry["markets"].items()]
    return found


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def rows(source: str, **where: Any) -> list[Row]:
    """The stored rows in which every column has the wanted value (or one of a tuple of values)."""
    return [
        row
        for row in _stored(source)
        if all(
            row.get(key) in wanted if isinstance(wanted, tuple) else row.get(key) == wanted
            for key, wanted in where.items()
        )
    ]


def v(source: str, column: str, **where: Any) -> Any:
    """The value of one column in the only row that fits."""
    fitting = rows(source, **where)
    if len(fitting) != 1:
        raise KeyError(f"{source} has {len(fitting)} rows with {where}")
    return fitting[0][column]


def n(source: str, column: str, form: str = ".2f", **where: Any) -> str:
    """One value as text."""
    return format(v(source, column, **where), form)


def i(source: str, column: str, form: str = ".2f", **where: Any) -> str:
    """One estimate with its interval as text."""
    mean, low, high = (v(source, column + end, **where) for end in ("", "_low", "_high"))
    return f"{mean:{form}} [{low:{form}}, {high:{form}}]"


def span(source: str, column: str, form: str = ".2f", **where: Any) -> str:
    """The least and the largest value of a column as text, or the one value that all have."""
    values = [row[column] for row in rows(source, **where) if row[column] not in (None, "")]
    ends = [format(pick(values), form) for pick in (min, max)]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


NAMES = {"rows": rows, "v": v, "n": n, "i": i, "span": span}
PLAIN = ("abs", "all", "any", "float", "format", "len", "max", "min", "round", "sorted", "sum")
BUILTINS = (
    {name: __builtins__[name] for name in PLAIN}
    if isinstance(__builtins__, dict)
    else {name: getattr(__builtins__, name) for name in PLAIN}
)


def _value(expression: str) -> Any:
    try:
        return eval(" ".join(expression.split()), {"__builtins__": BUILTINS} | NAMES)
    except Exception as error:
        raise FalseSentence(f"{expression} cannot be computed: {error!r}") from None


def page(text: str) -> str:
    """The page with every value computed. It is refused if a condition does not hold."""
    for expression in CONDITION.findall(text):
        if not _value(expression):
            raise FalseSentence(f"the stored results contradict a sentence: not ({expression})")
    return VALUE.sub(lambda mark: f"{mark[1]}{_value(mark[2])}{mark[4]}", text)


def unmarked(text: str) -> list[str]:
    """The lines with a measured number (decimals, percentages, times, sizes) outside of marks."""
    kept = BLOCK.sub("", text)
    kept = VALUE.sub("", kept)
    kept = re.sub(r"```.*?```|<!--.*?-->|`[^`\n]*`|\]\([^)]*\)", "", kept, flags=re.DOTALL)
    kept = re.sub(r"(?m)^    .*$", "", kept)
    kept = re.sub(r"95 %|more than 1 %|\bPython 3\.\d+", "", kept)  # what is meant, not measured
    measured = re.compile(
        r"(?<![\w.\-/])\d+\.\d{2,}(?![\w.])|\d ?%|\d (?:s|ms|µs|kB|MB|GB|minutes|seconds)\b"
    )
    return [line for line in kept.splitlines() if measured.search(line)]


PAGES = [HERE.parent / "README.md", *sorted(HERE.glob("*.md"))]

if __name__ == "__main__":
    wrong = []
    for path in PAGES:
        try:
            path.write_text(page(path.read_text()))
        except FalseSentence as sentence:
            wrong.append(f"{path.name}: {sentence}")
    sys.exit("\n".join(wrong) or None)
