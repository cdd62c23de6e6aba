"""How the command line shows things: consoles, progress bars, notes, tables, JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from flmarket_sim.cli.verbosity import chosen, timed
from flmarket_sim.errors import STEERING, InputError, one_line, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from flmarket_sim.aggregation.market_error import MarketError
    from flmarket_sim.auctions.auction import Auction
    from flmarket_sim.tables.cells import Row

SPEED_OVER = 4 * 3600.0  # seconds of steps from which the time left is estimated
stdout, stderr = Console(), Console(stderr=True)
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override, e.g. auction.name=all-in."),
]
AUCTION_HELP = (
    "NAME, NAME@WEIGHTS, module:Class or file.py:Class; options and a label around it, in quotes: "
    "'cheap=posted-price[price=1]'."
)
BUDGETS_HELP = "Budget factors: low:high:step, a list 0.5,1,2, or 'uniform' in [0.1, 2]."
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Wide = Annotated[bool, typer.Option("--wide", help="Show every column, at its full width.")]


def _checked_table_file(path: Path | None) -> Path | None:
    """Refuses a file of another kind before anything is computed."""
    from flmarket_sim.tables.table_files import WRITERS, is_table_file

    if path is not None and not is_table_file(path):
        raise InputError(f"--out names a file for a table, {', '.join(WRITERS)}; got {path}")
    return path


TableFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        callback=_checked_table_file,
        help="Also write the table: .csv, .md, .tex or .parquet.",
    ),
]


@contextmanager
def progress(what: str, step: str = "rounds") -> Iterator[Callable[..., None]]:
    """A progress bar on stderr. Yields `report(done, total, metrics)` to move it.

    The optional `metrics` are numbers to show beside the bar.
    """
    if chosen.quiet:
        with timed(what):
            yield lambda *_: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    name = one_line(what)
    with (
        timed(what),
        Progress(*columns, console=stderr, transient=True, speed_estimate_period=SPEED_OVER) as bar,
    ):
        task = bar.add_task(f"{name}: preparing", total=None)

        def report(done: int, total: int, metrics: dict[str, float] | None = None) -> None:
            shown = "".join(
                f"  {key} {value:.3f}" for key, value in (metrics or {}).items() if key != "step"
            )
            bar.update(task, completed=done, total=total, description=f"{name}: {step}{shown}")

        yield report


def print_text(text: object) -> None:
    """A line of plain text on stdout, neither wrapped nor coloured."""
    stdout.print(printable(str(text)), highlight=False, markup=False, soft_wrap=True)


def print_paragraphs(texts: Iterable[str]) -> None:
    """An empty line and plain texts on stdout, wrapped between words at the terminal's width."""
    from flmarket_sim.tables.table_text import wrapped

    for text in ("", *texts):
        stdout.print(Text(wrapped(printable(text), stdout.width)), soft_wrap=True)


def print_note(text: object) -> None:
    """A line of plain text on stderr, neither wrapped nor coloured; `-q` leaves it out."""
    if not chosen.quiet:
        stderr.print(printable(str(text)), highlight=False, markup=False, soft_wrap=True)


def print_next_steps(*commands: str) -> None:
    """Commands to copy, after the result of another; `-q` leaves them out."""
    if chosen.quiet:
        return
    for place, command in enumerate(commands):
        stdout.print(
            ("next: " if place == 0 else "      ") + one_line(command),
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def print_regime_notes(auctions: Iterable[Auction], error: MarketError) -> None:
    """A line on stderr for each learned auction that was trained for another regime."""
    from flmarket_sim.auctions.learned.regime import regime_note

    for note in dict.fromkeys(regime_note(auction, error) for auction in auctions):
        if note is not None:
            print_note(note)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def print_table(
    rows: Sequence[Row],
    columns: Sequence[str] = (),
    wide: bool = False,
    some: Sequence[Row] | None = None,
) -> None:
    """Prints the columns that answer the question, as many as the terminal has room for.

    `columns` are in order of importance; by default they are all. `some` are the rows that answer
    it, by default all. A last line says what is not shown. With `wide` every row and every column
    is there, those of `columns` first, however long the lines.
    """
    from flmarket_sim.tables.cells import shown_columns
    from flmarket_sim.tables.table_text import fitted

    everything = list(dict.fromkeys(name for row in rows for name in row))
    front = [name for name in columns if name in everything] or shown_columns(everything)
    rest = [name for name in shown_columns(everything) if name not in front]
    shown = fitted(rows, [*front, *rest]) if wide else fitted(some or rows, front, stdout.width)
    stdout.print(Text(shown.text), soft_wrap=True)
    left_out = [] if wide else [*shown.left_out, *rest]
    fewer = 0 if wide else len(rows) - len(some or rows)
    if (left_out or fewer) and not chosen.quiet:
        stdout.print(Text(_not_shown(left_out, fewer, stdout.width), style="dim"), soft_wrap=True)


def print_entries(rows: Sequence[Row]) -> None:
    """Prints rows of texts as a list: the first of a row to the left, the others beside it.

    The first text beside it stands alone; the others follow their heads. All of them are wrapped.
    """
    from flmarket_sim.tables.cells import head_of
    from flmarket_sim.tables.table_text import wrapped

    names = [one_line(str(next(iter(row.values())))) for row in rows]
    indent = min(max(map(len, names), default=0) + 2, max(stdout.width // 3, 12))
    for name, row in zip(names, rows, strict=True):
        lines = []
        for place, (key, text) in enumerate(list(row.items())[1:]):
            if text:
                words = text if place == 0 else f"{head_of(key)}: {text}"
                lines += wrapped(str(words), stdout.width - indent).splitlines()
        if len(name) > indent - 2:
            lines.insert(0, "")
        first, *rest = lines or [""]
        print_text(f"{name:<{indent}}{first}".rstrip())
        for line in rest:
            print_text(" " * indent + line)


def save_table(rows: Sequence[Row], path: Path | None) -> None:
    """Writes every column of a table to a file, if one is named, and says so on stderr."""
    from flmarket_sim.tables import ResultTable

    if path is not None:
        save_arrow(ResultTable.of(rows).arrow, path)


def save_arrow(table: pa.Table, path: Path | None) -> None:
    """The same for an Arrow table."""
    from flmarket_sim.tables.table_files import write_table

    if path is not None:
        print_note(f"the table is in {write_table(table, path)}")


def directory_and_table(out: Path | None) -> tuple[Path | None, Path | None]:
    """What `--out` names: a directory of results, or a file for their table.

    Where it names a file, results go to the usual directory.
    """
    from flmarket_sim.tables.table_files import is_table_file

    return (None, out) if out is not None and is_table_file(out) else (out, None)


def _not_shown(names: Sequence[str], rows: int, width: int) -> str:
    """One line: how many rows are not shown, and which columns, or the first of them."""
    from flmarket_sim.tables.cells import head_of

    ending = "; see --wide, --out table.csv" if width > 70 else "; see --wide"
    line, begin = "", f"not shown: {f'{rows:,} rows; ' if rows else ''}"
    for count in range(len(names), -1, -1):
        listed = ", ".join(head_of(name) for name in names[:count])
        rest = len(names) - count
        more = f"{' and ' if count else ''}{rest} {'more' if count else 'columns'}" if rest else ""
        line = f"{begin}{listed}{more}{ending}" if names else f"{begin[:-2]}{ending}"
        if len(line) <= width:
            return line
    return line


def print_json(content: Any) -> None:
    """JSON on stdout."""
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(STEERING.sub(lambda found: json.dumps(found[0])[1:-1], text) + "\n")


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
