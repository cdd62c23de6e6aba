"""plotly.js, the library that draws figures on pages; it comes inside the Python package plotly."""

from __future__ import annotations

import functools
import re

from plotly.offline import get_plotlyjs


@functools.cache
def script() -> str:
    """The library as one script that defines `Plotly`; a browser reads it with plain line ends."""
    text: str = get_plotlyjs()
    return text.replace("\r\n", "\n")


@functools.cache
def refused_styles() -> tuple[str, ...]:
    """Ids of the style elements with text that the library adds to a page unless the id is taken.

    They are for maps, which no page has. A page that holds elements of these ids has none of the
    styles, and its policy need not admit them.
    """
    return tuple(re.findall(r'getElementById\("([0-9a-f]{64})"\)', script()))
