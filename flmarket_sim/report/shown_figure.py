"""A matplotlib figure that a notebook shows, and whose files can be printed and compared."""

from __future__ import annotations

import io
import os
from typing import Any

import matplotlib
from matplotlib.figure import Figure

DOTS = 100  # an inch, on a screen

# Type 42 embeds TrueType fonts, which publishers accept; type 3 they refuse. With a fixed salt and
# without a date, the same figure gives the same bytes.
FILES = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.hashsalt": "flmarket"}
DATES = {".svg": "Date", ".pdf": "CreationDate"}


class ShownFigure(Figure):
    """A figure that belongs to nobody's list of open figures, so nobody has to close it."""

    svg_text = False

    def savefig(self, fname: Any, **options: Any) -> None:
        """Writes the figure as matplotlib does, with fonts embedded and without a date."""
        suffix = os.path.splitext(fname)[1].lower() if isinstance(fname, str | os.PathLike) else ""
        suffix = f".{options['format']}" if "format" in options else suffix
        if suffix in DATES:
            options["metadata"] = {DATES[suffix]: None} | (options.get("metadata") or {})
        settings: Any = FILES | {"svg.fonttype": "none" if self.svg_text else "path"}
        with matplotlib.rc_context(settings):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.savefig(target, format="png", dpi=DOTS)
        return target.getvalue()
