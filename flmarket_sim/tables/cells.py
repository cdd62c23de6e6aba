"""One cell of a table as text: a number with its digits, an estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flmarket_sim.errors import one_line

Row = Mapping[str, Any]
PLAIN_BELOW = 1e12  # larger numbers are written in scientific notation
SMALL = 0.01  # an interval below this has the significant digits of each of its numbers
ENDS = ("_low", "_high")


def shown_columns(names: Sequence[str]) -> list[str]:
    """The columns that have a cell of their own: NAME_low and NAME_high share that of NAME."""
    ends = {f"{name}{end}" for name in names for end in ENDS}
    return [name for name in names if name not in ends]


def head_of(name: str) -> str:
    """The head of a column; the path of a setting (owners.privacy_budget) stays as it is."""
    return one_line(name if "." in name else name.replace("_", " "))


def cell_of(row: Row, name: str) -> str:
    """A value; with its interval where columns NAME_low and NAME_high are beside it."""
    value, low, high = row.get(name), row.get(f"{name}_low"), row.get(f"{name}_high")
    if value is None or low is None or high is None or low != low or high != high:
        return number(value)
    if all(abs(end) < SMALL for end in (value, low, high)):
        return f"{number(value)} [{number(low)}, {number(high)}]"
    places = _places(float(value), float(low), float(high))
    return f"{number(value, places)} [{number(low, places)}, {number(high, places)}]"


def number(value: Any, places: int | None = None) -> str:
    """A number with three significant digits, or with so many decimal places.

    A missing value is an empty text. Numbers from a million million on are in scientific notation.
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return one_line(str(value))
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) >= PLAIN_BELOW or (isinstance(value, float) and 0 < abs(value) < 1e-4):
        return f"{value:.2e}"
    if isinstance(value, int):
        return f"{value:,}"
    value = value + 0.0 if value else 0.0  # -0.0 is shown as 0
    if places is not None:
        return f"{value:,.{places}f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _places(value: float, low: float, high: float) -> int:
    """Decimal places that give the middle of an interval three digits and tell its ends apart."""
    largest = max(abs(number) for number in (value, low, high) if math.isfinite(number))
    width = high - low
    digits = 2 - math.floor(math.log10(largest)) if largest else 2
    if 0 < width < math.inf:
        digits = max(digits, 1 - math.floor(math.log10(width)))
    return min(max(digits, 0), 6)
