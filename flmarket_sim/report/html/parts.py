"""The parts of a report page as plain data: charts, tables, and sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from flmarket_sim.statistics import Estimate

POINTS = 2_000  # in a series; a page stays below some megabytes
ROWS = 500  # in a table

Point = list[Any]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Series:
    """One colour of a chart.

    A point is [x, y] or [x, y, low, high], and [start, end, lane] in a timeline. `labels` describe
    the points under the mouse pointer; there is one for each point, or none at all. A `reference`
    is no result but something to hold results against: a dashed line without marks.
    """

    name: str
    points: list[Point]
    labels: list[str] = field(default_factory=list)
    reference: bool = False


@dataclass(frozen=True)
class Chart:
    """A figure. Charts of several inputs that share an `id` become one chart of a comparison.

    kind       line, scatter, bars (x are names) or timeline
    diagonal   draw y = x
    percent    y is a share
    level      a line across the figure at this y
    y_top      the vertical axis ends here, even if values lie above it
    """

    id: str
    title: str
    kind: str
    x_label: str
    y_label: str
    series: list[Series]
    note: str = ""
    x_log: bool = False
    y_log: bool = False
    percent: bool = False
    diagonal: bool = False
    level: float | None = None
    y_top: float | None = None


@dataclass(frozen=True)
class Table:
    """A table. Cells are text, numbers, None or estimates, which are sorted by their mean."""

    id: str
    title: str
    columns: list[str]
    rows: list[list[Any]]
    note: str = ""


@dataclass(frozen=True)
class Source:
    """One input of a page.

    label      what tells it from the other inputs of a page; the name of its folder if it is alone
    folder     the name of its folder or file
    measures   estimates that a comparison sets side by side
    world      equal for inputs that met the same owners and the same luck; empty if unknown
    units      the values of each measure by (replication, part of the replication): paired
               differences are taken part by part and averaged within a replication; their interval
               is over replications
    """

    label: str
    kind: str
    title: str
    description: str = ""
    notices: list[str] = field(default_factory=list)
    cards: list[tuple[str, str]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    picture: str = ""
    measures: dict[str, Estimate] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    world: str = ""
    replications: str = ""
    folder: str = ""
    units: dict[str, dict[tuple[Any, str], float]] = field(default_factory=dict)


def evenly(rows: Sequence[Item], limit: int) -> list[Item]:
    """At most `limit` of the rows, at even distances, with the first and the last."""
    if len(rows) <= limit:
        return list(rows)
    return [rows[int(k)] for k in np.linspace(0, len(rows) - 1, limit).round()]


def sampled(count: int, total: int, noun: str) -> str:
    """The sentence that goes with `evenly`; empty if the page has all of them."""
    return "" if count >= total else f"{count:,} of {total:,} {noun} are shown, evenly chosen."


def plain(value: Any) -> Any:
    """A value for JSON: six digits, no infinities; an estimate becomes {mean, low, high}."""
    if isinstance(value, Estimate):
        return {"mean": plain(value.mean), "low": plain(value.low), "high": plain(value.high)}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return str(value)


def short(value: float | None, percent: bool = False) -> str:
    """A number on a card."""
    if value is None or not math.isfinite(value):
        return "-"
    if percent:
        return f"{value:.1%}"
    if value and (abs(value) >= 1e7 or abs(value) < 1e-3):
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def flattened(content: Any, path: str = "") -> dict[str, str]:
    """Nested settings as dotted paths: {"auction.name": "all-in"}; a plain list is one entry."""
    if isinstance(content, dict) and content:
        inner = [
            flattened(value, f"{path}.{key}" if path else str(key))
            for key, value in content.items()
        ]
    elif isinstance(content, list) and any(isinstance(value, dict) for value in content):
        inner = [flattened(value, f"{path}[{place}]") for place, value in enumerate(content)]
    else:
        return {path: "" if content in (None, [], {}) else str(content)}
    return {key: text for part in inner for key, text in part.items()}
