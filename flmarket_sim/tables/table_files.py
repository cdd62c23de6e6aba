"""A table as a file; its suffix is the format.

.csv and .parquet hold every column at full precision. .md and .tex are for reading: an estimate and
its interval share a cell.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from flmarket_sim.errors import FlmarketError, InputError, shortened
from flmarket_sim.storage.atomic_files import write_whole
from flmarket_sim.tables.cells import cell_of, head_of, shown_columns

SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def is_table_file(path: str | os.PathLike[str]) -> bool:
    """Whether the suffix of a path is that of a table."""
    return Path(path).suffix.lower() in WRITERS


def write_table(table: pa.Table, path: str | os.PathLike[str], columns: Sequence[str] = ()) -> Path:
    """Writes a table, or some of its columns, as .csv, .md, .tex or .parquet."""
    place = Path(path)
    writer = WRITERS.get(place.suffix.lower())
    if writer is None:
        known = ", ".join(WRITERS)
        raise InputError(f"a table cannot be written to {place}: its suffix must be one of {known}")
    if columns:
        ends = (f"{name}{end}" for name in columns for end in ("", "_low", "_high"))
        table = table.select([name for name in ends if name in table.column_names])
    try:
        content = writer(table)
        write_whole(place, lambda fresh: fresh.write_bytes(content))
    except OSError as error:
        raise FlmarketError(f"the table cannot be written to {place}: {error}") from None
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(
            f"the table cannot be written as {place.suffix}: {shortened(str(error))}"
        ) from None
    return place


def markdown(table: pa.Table) -> str:
    """A Markdown table; numbers are aligned to the right."""
    names, lines = _cells(table)
    numbers = _numbers(table, names)
    rule = "|" + "".join("---:|" if number else "---|" for number in numbers)
    rows = [[cell.replace("|", "\\|") for cell in line] for line in [names, *lines]]
    text = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([text[0], rule, *text[1:]]) + "\n"


def latex(table: pa.Table) -> str:
    """A LaTeX tabular with the rules of the package booktabs."""
    names, lines = _cells(table)
    align = "".join("r" if number else "l" for number in _numbers(table, names))
    rows = [" & ".join(_escaped(cell) for cell in line) + r" \\" for line in [names, *lines]]
    head = ["% \\usepackage{booktabs}", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
    return "\n".join([*head, rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", ""])


def _csv(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    nested = [pa.types.is_nested(field.type) for field in table.schema]
    for place, inner in enumerate(nested):
        if inner:  # CSV has no lists
            texts = pa.array([None if v is None else str(v) for v in table[place].to_pylist()])
            table = table.set_column(place, table.schema[place].name, texts)
    pyarrow.csv.write_csv(table, buffer)
    return buffer.getvalue()


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


WRITERS: dict[str, Callable[[pa.Table], bytes]] = {
    ".csv": _csv,
    ".md": lambda table: markdown(table).encode(),
    ".tex": lambda table: latex(table).encode(),
    ".parquet": _parquet,
}


def _cells(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    names = shown_columns(table.column_names)
    rows = table.to_pylist()
    return [head_of(name) for name in names], [
        [cell_of(row, name) for name in names] for row in rows
    ]


def _numbers(table: pa.Table, heads: list[str]) -> list[bool]:
    kinds = {head_of(field.name): field.type for field in table.schema}
    return [pa.types.is_floating(kinds[head]) or pa.types.is_integer(kinds[head]) for head in heads]


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)
