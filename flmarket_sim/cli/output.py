"""How the command line shows things: consoles, progress bars, tables, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from flmarket_sim.aggregation.market_error import MarketError
    from flmarket_sim.auctions.auction import Auction

SPEED_OVER = 4 * 3600.0  # seconds of steps from which the time left is estimated
stdout, stderr = Console(), Console(stderr=True)
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override, e.g. auction.name=all-in."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


@contextmanager
def progress(what: str, step: str = "rounds") -> Iterator[Callable[..., None]]:
    """A progress bar on stderr. Yields `report(done, total, metrics)` to move it.

    The optional `metrics` are numbers to show beside the bar.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=stderr, transient=True, speed_estimate_period=SPEED_OVER
    ) as bar:
        task = bar.add_task(f"{what}: preparing", total=None)

        def report(done: int, total: int, metrics: dict[str, float] | None = None) -> None:
            shown = "".join(
                f"  {key} {value:.3f}" for key, value in (metrics or {}).items() if key != "step"
            )
            bar.update(task, completed=done, total=total, description=f"{what}: {step}{shown}")

        yield report


def print_text(text: object) -> None:
    """A line of plain text on stdout, neither wrapped nor coloured."""
    stdout.print(str(text), highlight=False, markup=False, soft_wrap=True)


def print_note(text: object) -> None:
    """A line of plain text on stderr, neither wrapped nor coloured."""
    stderr.print(str(text), highlight=False, markup=False, soft_wrap=True)


def print_regime_notes(auctions: Iterable[Auction], error: MarketError) -> None:
    """A line on stderr for each learned auction that was trained for another regime."""
    from flmarket_sim.auctions.learned.regime import regime_note

    for note in dict.fromkeys(regime_note(auction, error) for auction in auctions):
        if note is not None:
            print_note(note)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def print_rows(rows: list[dict[str, str]]) -> None:
    """Rows with the same keys as a table."""
    table = Table(box=None, pad_edge=False)
    for head in rows[0]:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row.values()))
    stdout.print(table)


def print_json(content: Any) -> None:
    """JSON on stdout."""
    sys.stdout.write(
        json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: infinity becomes a text, and nan becomes null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
