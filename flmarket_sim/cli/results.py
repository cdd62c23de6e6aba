"""How the command line shows and writes the results of calls: the same as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from flmarket_sim.cli.output import print_json, print_note, print_table, stdout
from flmarket_sim.errors import printable

if TYPE_CHECKING:
    from flmarket_sim.report.figure_style import FigureStyle
    from flmarket_sim.results.result import Result

LOUD = {"refuted": "bold red", "failed": "bold red"}


Compare = Annotated[
    str | None,
    typer.Option(
        metavar="AUCTION",
        help="Compare the others with this auction in the same markets; by default the first.",
    ),
]


def write_result(result: Result, out: Path | None, figure: Path | None, style: FigureStyle) -> None:
    """Writes table and figure to the files that were named, and says so on stderr."""
    for what, path in (("table", out), ("figure", figure)):
        if path is not None:
            print_note(f"the {what} is in {result.save(path, style)}")


def print_result(result: Result, as_json: bool, wide: bool) -> None:
    """The result as JSON, or as tables and sentences; with `wide`, every column of its table."""
    if as_json:
        print_json(result.as_json())
        return
    _print_sentence(result.title)
    for place, part in enumerate(result.parts()):
        if place:
            stdout.print()
        if part.title:
            _print_sentence(part.title)
        if part.rows:
            rows = result.rows if wide and not place else part.rows
            print_table(rows, () if wide else part.columns, wide)
        for note in part.notes:
            _print_sentence(note)
    for sentence in result.sentences:
        _print_sentence(sentence)


def _print_sentence(text: str) -> None:
    """A paragraph that is wrapped between words, with the words that must not be overlooked."""
    shown = Text(printable(text))
    for word, style in LOUD.items():
        shown.highlight_words([word, word.capitalize()], style)
    stdout.print(shown)
