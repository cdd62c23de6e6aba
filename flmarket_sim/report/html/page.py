"""One self-contained HTML page: template, styles and scripts of this folder, and data as JSON.

Data are never markup: they are in a JSON block, and the scripts put them into the page as text. The
page's Content-Security-Policy allows only the styles and scripts whose hash it names, and no
network.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from flmarket_sim.errors import FlmarketError, InputError, shortened
from flmarket_sim.report.figures import COLOURS
from flmarket_sim.report.html import compare, page_files, plotly_library, sources
from flmarket_sim.report.html.constants import without_constants
from flmarket_sim.report.html.parts import Source, Table, plain
from flmarket_sim.storage.atomic_files import write_text


def make(paths: Sequence[str | os.PathLike[str]]) -> str:
    """The page of one input, or a comparison of several."""
    try:
        inputs = compare.labelled([sources.read(Path(path)) for path in paths])
        return render(content(inputs))
    except FlmarketError:
        raise
    except Exception as error:  # a directory that was sent to us may hold anything
        where = ", ".join(map(str, paths))
        what = shortened(f"{type(error).__name__}: {error}")
        raise InputError(
            f"{where} cannot be reported on: a file there is damaged, or of another version "
            f"({what})"
        ) from error


def content(inputs: list[Source]) -> dict[str, Any]:
    """The content of the page as plain data."""
    first = inputs[0]
    several = len(inputs) > 1
    labels = " and ".join(source.label for source in inputs[:3])
    title = labels + (" and others" if len(inputs) > 3 else "") if several else first.title
    provenance = compare.settings(
        [Source(s.label, s.kind, s.title, settings=s.provenance) for s in inputs]
    )
    settings = compare.settings(inputs)
    tables = compare.tables(inputs) if several else first.tables
    charts, constant = without_constants(compare.charts(inputs) if several else first.charts)
    page: dict[str, Any] = plain(
        {
            "title": f"Comparison of {title}" if several else title,
            "kind": "comparison" if several else first.kind,
            "description": "" if several else first.description,
            "notices": [
                f"{source.label}: {text}" if several else text
                for source in inputs
                for text in source.notices
            ],
            "inputs": [
                {
                    "label": s.label,
                    "folder": s.folder,
                    "kind": s.kind,
                    "title": s.title,
                    "description": s.description,
                    "cards": s.cards,
                }
                for s in inputs
            ],
            "sentences": [
                *(
                    f"{s.label}: {text}" if several else text
                    for s in inputs
                    for text in s.sentences
                ),
                *constant,
            ],
            "charts": [asdict(chart) for chart in charts],
            "pictures": [{"label": s.label, "address": s.picture} for s in inputs if s.picture],
            "tables": [_table(table) for table in tables],
            "settings": _table(settings if several else _two_columns(settings)),
            "provenance": _table(provenance if several else _two_columns(provenance)),
            "colours": COLOURS,
            "version": metadata.version("flmarket-sim"),
        }
    )
    return page


def render(data: dict[str, Any]) -> str:
    style = page_files.text("page.css")
    library = plotly_library.script()
    script = page_files.figure_script() + "\n" + page_files.text("page.js")
    admitted = page_files.admitted
    filled = {
        "POLICY": f"default-src 'none'; style-src {admitted(style)} {page_files.EMPTY_STYLE}; "
        f"script-src {admitted(library)} {admitted(script)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
        "STYLE": style,
        "REFUSED": "".join(
            f'<template id="{name}"></template>' for name in plotly_library.refused_styles()
        ),
        "LIBRARY": library,
        "SCRIPT": script,
        "DATA": _inert(data),
    }
    head, *pieces = page_files.text("page.html").split("@@")
    return head + "".join(filled.get(piece, piece) for piece in pieces)


def write(paths: Sequence[str | os.PathLike[str]], out: Path, force: bool = False) -> Path:
    """Makes the page and writes it atomically."""
    if out.is_dir():
        raise InputError(f"{out} is a directory; name a file with `out`")
    if out.exists() and not force:
        raise InputError(
            f"{out} is there already; `force=True` writes over it, `out` names another file"
        )
    page = make(paths)
    try:
        write_text(out, page)
    except OSError as error:
        raise FlmarketError(f"the report cannot be written to {out}: {error}") from None
    return out


def _inert(data: dict[str, Any]) -> str:
    """JSON that cannot end its <script> element or open a comment in it: no '<' is left."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _table(table: Table) -> dict[str, Any]:
    return {
        "id": table.id,
        "title": table.title,
        "columns": table.columns,
        "rows": table.rows,
        "note": table.note,
    }


def _two_columns(table: Table) -> Table:
    """The table of one input, without the column that says which settings differ."""
    return Table(table.id, table.title, ["what", "value"], [[row[0], row[2]] for row in table.rows])
