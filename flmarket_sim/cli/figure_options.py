"""Options of every command that draws: the file, its width in print, and its labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flmarket_sim.errors import InputError

if TYPE_CHECKING:
    from flmarket_sim.report.figure_style import FigureStyle

FIGURES = (".pdf", ".svg", ".png")


def _checked_figure(path: Path | None) -> Path | None:
    """Refuses a file of another kind before anything is computed."""
    if path is not None and path.suffix.lower() not in FIGURES:
        raise InputError(f"a figure is a file {', '.join(FIGURES)}; got {path}")
    return path


def _checked_width(text: str | None) -> str | None:
    """Refuses a width that is none before anything is computed."""
    from flmarket_sim.report.figure_style import FigureStyle, width_in_inches

    if text is not None:
        FigureStyle(width=width_in_inches(text))
    return text


def _checked_names(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if "=" not in name:
            raise InputError(
                f'--name is NAME=TEXT, as in --name "all-in=All-in (ours)"; got {name}'
            )
    return names


FigureFile = Annotated[
    Path | None,
    typer.Option(
        "--figure",
        metavar="FILE",
        callback=_checked_figure,
        help="Also draw a figure: .pdf, .svg or .png.",
    ),
]
DifferencesFile = Annotated[
    Path | None,
    typer.Option(
        "--difference-figure",
        metavar="FILE",
        callback=_checked_figure,
        help="Also draw the paired differences with their intervals: .pdf, .svg or .png.",
    ),
]
FigureWidth = Annotated[
    str | None,
    typer.Option(
        "--width",
        metavar="WIDTH",
        callback=_checked_width,
        help="Width of the figure in print: column (3.4 inches), page (7 inches), or inches.",
    ),
]
XLabel = Annotated[str | None, typer.Option("--xlabel", help="Text below the figure's axis.")]
YLabel = Annotated[str | None, typer.Option("--ylabel", help="Text beside the figure's axis.")]
FigureTitle = Annotated[str | None, typer.Option("--title", help="Text above the figure.")]
LegendNames = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME=TEXT",
        callback=_checked_names,
        help='What the legend calls a line: "all-in=All-in (ours)". Can be repeated.',
    ),
]


def figure_style(
    width: str | None,
    x_label: str | None,
    y_label: str | None,
    title: str | None,
    names: list[str] | None,
) -> FigureStyle:
    """The style that the options describe."""
    from flmarket_sim.report.figure_style import FigureStyle, width_in_inches

    pairs = (name.split("=", 1) for name in names or ())
    return FigureStyle(
        width=None if width is None else width_in_inches(width),
        x_label=x_label,
        y_label=y_label,
        title=title,
        labels={name.strip(): text.strip() for name, text in pairs},
    )
