"""The scripts and styles of this folder, and the hashes by which a policy admits them."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

# In the order in which they are loaded: they define `figureOf`, `updateFigure`, `removeFigure` and
# `makeTable`, and they need plotly.
FIGURE_SCRIPTS = ("elements.js", "overlaps.js", "traces.js", "figures.js", "tables.js")


def text(name: str) -> str:
    """A file of this folder."""
    return resources.files("flmarket_sim.report.html").joinpath(name).read_text(encoding="utf-8")


def figure_script() -> str:
    """What a page needs to draw charts and tables, as one script."""
    return "\n".join(text(name) for name in FIGURE_SCRIPTS)


def admitted(source: str) -> str:
    """The name of a script or style in a Content-Security-Policy: its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


# plotly adds empty style elements and fills them through the object model of the document, which a
# policy with the hash of the empty style allows. Text in a style element stays refused.
EMPTY_STYLE = admitted("")
