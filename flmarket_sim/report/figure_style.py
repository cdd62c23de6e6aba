"""How a figure looks where it is printed: its width, its letters and its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flmarket_sim.errors import InputError, shown

WIDTHS = {"column": 3.4, "page": 7.0}  # inches: one column of a paper, and both
LETTERS = 8.0  # points, at the width of a paper
NARROWEST, WIDEST = 1.5, 30.0  # inches


@dataclass(frozen=True)
class FigureStyle:
    """The look of a figure; by default that of a screen, with the labels of its maker.

    width     inches, for a figure that is printed at that width with letters of `letters` points
    letters   size of the letters in points
    x_label, y_label, title
              texts that replace those of the figure; None keeps them
    labels    names for the legend in place of those in the rows
    svg_text  letters in an SVG stay text, for editing; else they are outlines, the same everywhere
    """

    width: float | None = None
    letters: float = LETTERS
    x_label: str | None = None
    y_label: str | None = None
    title: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    svg_text: bool = False

    def __post_init__(self) -> None:
        if self.width is not None and not NARROWEST <= self.width <= WIDEST:
            raise InputError(
                f"the width of a figure is between {NARROWEST} and {WIDEST:.0f} inches; "
                f"got {self.width:g}"
            )

    def size(self, usual: tuple[float, float], rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
        """Width and height in inches of a figure with so many rows and columns of panels."""
        if self.width is None:
            return usual
        of_panel = self.width / columns
        return self.width, rows * max(1.5, 0.66 * of_panel) + 0.35

    def columns(self, usual: int) -> int:
        """How many panels stand side by side: in a column of a paper, one."""
        return 1 if self.width is not None and self.width < 5 else usual

    def named(self, name: Any) -> str:
        """What the legend calls a group."""
        return self.labels.get(str(name), str(name))

    @property
    def line(self) -> float:
        """Width of lines in points."""
        return 1.5 if self.width is None else 1.1

    @property
    def mark(self) -> float:
        """Size of marks in points."""
        return 4.0 if self.width is None else 3.0

    def settings(self) -> dict[str, Any]:
        """The settings of matplotlib under which the figure is made."""
        if self.width is None:
            return {}
        small = self.letters - 1
        return {
            "font.size": self.letters, "axes.labelsize": self.letters,
            "axes.titlesize": self.letters, "figure.titlesize": self.letters + 1,
            "xtick.labelsize": small, "ytick.labelsize": small, "legend.fontsize": small,
            "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
            "xtick.minor.width": 0.4, "ytick.minor.width": 0.4, "xtick.major.size": 2.5,
            "ytick.major.size": 2.5, "xtick.minor.size": 1.5, "ytick.minor.size": 1.5,
            "legend.handlelength": 1.8, "legend.columnspacing": 1.0, "legend.labelspacing": 0.25,
            "axes.labelpad": 2.0, "lines.linewidth": self.line,
        }  # fmt: skip


SCREEN = FigureStyle()


def width_in_inches(text: str) -> float:
    """The width that a text names: column, page, or a number of inches."""
    if text in WIDTHS:
        return WIDTHS[text]
    try:
        return float(text)
    except ValueError:
        names = " or ".join(f"{name} ({inches} inches)" for name, inches in WIDTHS.items())
        raise InputError(
            f"the width of a figure is {names} or a number of inches; got {shown(text)}"
        ) from None
