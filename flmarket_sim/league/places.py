"""The places of the league: by the error over the floor, among those whose error can be compared.

A mechanism that refuses to buy where that is hard, or pays owners less than their sales cost them,
has less error and is no better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

MOST_INVALID = 0.1  # share of a market's draws without a sale
MOST_UNDERPAID = 0.01  # of cost
Row = dict[str, Any]


def why_no_place(whole: Row) -> str:
    """Why the row of a mechanism over the card has no place; empty if it has one."""
    played, markets = whole.get("played", 0), whole.get("markets", 0)
    invalid, underpaid = whole.get("most_invalid"), whole.get("underpaid")
    if played < markets:
        return f"could play {played} of {markets} markets"
    if invalid is None or invalid > MOST_INVALID:
        return f"buys nothing in {_share(invalid)} of the draws of one market"
    if underpaid is None or underpaid > MOST_UNDERPAID:
        return f"leaves owners {_share(underpaid)} of all cost short"
    return "" if whole.get("over_floor") is not None else "has no error over the floor"


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows with their `place`, best first; those without one come last, by their error."""
    ordered = sorted(rows, key=lambda row: (bool(why_no_place(row)), over_floor(row)))
    return [
        row | {"place": None if why_no_place(row) else place}
        for place, row in enumerate(ordered, 1)
    ]


def over_floor(whole: Row) -> float:
    """The error over the floor; infinite where there is none."""
    over = whole.get("over_floor")
    return math.inf if over is None else float(over)


def _share(value: float | None) -> str:
    return "all" if value is None else f"{value:.1%}"
