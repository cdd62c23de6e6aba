"""What every result has: a repr for people, rows for other libraries, a figure, and files."""

from __future__ import annotations

import html
import json
import os
import shutil
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError, printable
from flmarket_sim.report import figures
from flmarket_sim.report.figure_style import SCREEN, FigureStyle, width_in_inches
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.cells import Row
from flmarket_sim.tables.result_table import ResultTable
from flmarket_sim.tables.table_files import WRITERS, is_table_file
from flmarket_sim.tables.table_text import as_html, fitted

FIGURES = (".pdf", ".svg", ".png")
FOR_READING = (".md", ".tex")  # tables that people read: the columns of the repr and no others
ROWS_SHOWN = 20
WIDTH = 100  # characters, where no terminal says its own


@dataclass(frozen=True)
class ResultPart:
    """A table of a result as people see it: `columns` in order of importance, all by default."""

    rows: Sequence[Row]
    columns: Sequence[str] = ()
    title: str = ""
    notes: Sequence[str] = ()


class Result(ABC):
    """The result of a call: rows, sentences and a figure.

    `table` has every number, and libraries that read Arrow data take the result as it is.
    """

    @property
    @abstractmethod
    def table(self) -> ResultTable:
        """Every number, one row a line of the result."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The result in one line."""

    @abstractmethod
    def parts(self) -> list[ResultPart]:
        """The tables that people see. The first one is the result's own."""

    @abstractmethod
    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """The rows of the figure, and how they are drawn."""

    @property
    def sentences(self) -> list[str]:
        """What the numbers say, and what they are about."""
        return []

    def as_json(self) -> Any:
        """The result as plain data."""
        return self.rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table as dictionaries."""
        return self.table.rows

    def to_arrow(self) -> Any:
        """The table as a `pyarrow.Table`."""
        return self.table.arrow

    def to_pandas(self, **options: Any) -> Any:
        """The table as a pandas DataFrame."""
        return self.table.to_pandas(**options)

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return self.table.to_polars()

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        x_label: str | None = None,
        y_label: str | None = None,
        log: bool | None = None,
        width: float | str | None = None,
        style: FigureStyle = SCREEN,
    ) -> Any:
        """Draws the result as a matplotlib figure, and writes it where a path is given.

        The suffix is the format: .pdf, .svg or .png. `x_label` and `y_label` replace the labels of
        the axes, and `log` says whether the vertical axis is logarithmic. `width` is "column",
        "page" or inches, for a figure that is printed at that width; `style` has all there is to
        set.
        """
        rows, plot = self.drawing()
        if log is not None:
            plot = replace(plot, log=log)
        chosen = replace(
            style,
            width=style.width if width is None else width_in_inches(str(width)),
            x_label=style.x_label if x_label is None else x_label,
            y_label=style.y_label if y_label is None else y_label,
        )
        return figures.draw(rows, plot, None if path is None else Path(path), chosen)

    def save(self, path: str | os.PathLike[str], style: FigureStyle = SCREEN) -> Path:
        """Writes the result; the suffix says what.

        .csv and .parquet hold the whole table, .md and .tex the table as people see it, .json
        everything as plain data, and .pdf, .svg and .png the figure, in the given style.
        """
        place = Path(path)
        suffix = place.suffix.lower()
        if suffix in FIGURES:
            self.plot(place, style=style)
        elif suffix == ".json":
            _write_json(self.as_json(), place)
        elif suffix in FOR_READING:
            first = self.parts()[0]
            ResultTable.of(first.rows).save(place, first.columns)
        elif is_table_file(place):
            self.table.save(place)
        else:
            known = ", ".join((*WRITERS, ".json", *FIGURES))
            raise InputError(f"{place} cannot be written: its suffix must be one of {known}")
        return place

    def text(self, width: int | None = None, most: int | None = None) -> str:
        """The result for a terminal that is so wide, with at most so many rows of each table."""
        return printable("\n".join(self._lines(width, most)))

    def _lines(self, width: int | None, most: int | None) -> Iterator[str]:
        yield _wrapped(self.title, width)
        for place, part in enumerate(self.parts()):
            if place:
                yield ""
            if part.title:
                yield _wrapped(part.title, width)
            if part.rows:
                yield fitted(part.rows[:most], part.columns, width).text
            if most is not None and len(part.rows) > most:
                yield f"... and {len(part.rows) - most:,} rows more"
            yield from (_wrapped(note, width) for note in part.notes)
        yield from (_wrapped(sentence, width) for sentence in self.sentences)

    def __len__(self) -> int:
        return len(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        width = shutil.get_terminal_size((WIDTH, 24)).columns
        return self.text(width, ROWS_SHOWN)

    def _repr_html_(self) -> str:
        blocks = [f"<p><b>{html.escape(self.title)}</b></p>"]
        for part in self.parts():
            if part.title:
                blocks.append(f"<p>{html.escape(part.title)}</p>")
            if part.rows:
                blocks.append(as_html(part.rows[:ROWS_SHOWN], part.columns))
            if len(part.rows) > ROWS_SHOWN:
                blocks.append(f"<p>... and {len(part.rows) - ROWS_SHOWN:,} rows more</p>")
            blocks += [f"<p>{html.escape(note)}</p>" for note in part.notes]
        blocks += [f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences]
        return "\n".join(blocks)


def _wrapped(text: str, width: int | None) -> str:
    """Text in lines that are no longer than a terminal is wide; lines of its own stay."""
    if width is None:
        return text
    lines = (
        textwrap.wrap(
            line,
            width,
            break_long_words=False,
            break_on_hyphens=False,
            subsequent_indent="  " if line.startswith("- ") else "",
        )
        for line in text.splitlines()
    )
    return "\n".join("\n".join(line) for line in lines)


def _write_json(content: Any, place: Path) -> None:
    text = json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        write_text(place, text)
    except OSError as error:
        raise FlmarketError(f"the result cannot be written to {place}: {error}") from None


def plain(value: Any) -> Any:
    """The value as JSON can hold it: infinity becomes a text, and nan becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
