"""Figures: nothing is cut, widths and letters are those of a paper, files can be compared."""

from dataclasses import replace

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.report import figures
from flmarket_sim.report.difference_figure import draw_differences
from flmarket_sim.report.figure_style import FigureStyle, width_in_inches
from flmarket_sim.studies.study import Plot


def test_a_logarithmic_axis_shows_every_panel_whole(tmp_path):
    rows = [
        {"x": x, "y": y, "y_low": 0.0, "y_high": 1.5 * y, "g": "a", "p": p}
        for p, y in (("low", 2.0), ("high", 60.0))
        for x in (1, 2)
    ]
    plot = Plot("x", "y", "g", "", "", log=True, panel="p")
    figure = figures.draw(rows, plot, tmp_path / "figure.png")
    limits = [axis.get_ylim() for axis in figure.axes]
    assert (tmp_path / "figure.png").exists()
    assert len(limits) == 2 and all(0 < low < 2 and high > 90 for low, high in limits)


ROWS = [
    {"x": x, "y": y + x, "y_low": y, "y_high": y + 2 * x, "g": group}
    for group, y in (("all-in", 1.0), ("pay-as-bid", 2.0), ("first-best", 0.5))
    for x in (1.0, 2.0)
]
LINES = Plot("x", "y", "g", "budget", "error")


def test_a_figure_for_a_column_is_as_wide_and_its_letters_as_high(tmp_path):
    figure = figures.draw(ROWS, LINES, None, FigureStyle(width=3.4))
    assert figure.get_figwidth() == 3.4 and figure.get_figheight() < 3.4
    (axis,) = figure.axes
    assert axis.xaxis.label.get_size() == 8.0
    assert min(tick.get_size() for tick in axis.get_xticklabels()) == 7.0
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1  # nothing sticks out


def test_two_panels_stand_one_above_the_other_in_a_column():
    rows = [row | {"p": panel} for panel in ("a", "b") for row in ROWS]
    places = [
        [axis.get_subplotspec().colspan.start for axis in drawn.axes]
        for drawn in (
            figures.draw(rows, replace(LINES, panel="p"), None, FigureStyle(width=width))
            for width in (3.4, 7.0)
        )
    ]
    assert places == [[0, 0], [0, 1]]


def test_labels_of_a_style_replace_those_of_the_plot():
    style = FigureStyle(
        x_label="B", y_label="E", title="T", labels={"all-in": "All-in (ours)"}, width=3.4
    )
    figure = figures.draw(ROWS, LINES, None, style)
    (axis,) = figure.axes
    assert (axis.get_xlabel(), axis.get_ylabel(), figure.get_suptitle()) == ("B", "E", "T")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["All-in (ours)", "pay-as-bid", "first-best"]


@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".png"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, suffix):
    files = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
    for file in files:
        figures.draw(ROWS, LINES, file, FigureStyle(width=3.4))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_pdf_has_its_fonts_inside_as_truetype(tmp_path):
    """Publishers refuse type 3."""
    file = tmp_path / "figure.pdf"
    figures.draw(ROWS, LINES, file, FigureStyle(width=3.4))
    content = file.read_bytes()
    assert b"/FontFile2" in content and b"/CIDFontType2" in content
    assert b"/Type3" not in content and b"CreationDate" not in content


def test_letters_of_an_svg_are_outlines_or_text(tmp_path):
    outlines, text = tmp_path / "outlines.svg", tmp_path / "text.svg"
    figures.draw(ROWS, LINES, outlines)
    figures.draw(ROWS, LINES, text, FigureStyle(svg_text=True))
    assert "<text" not in outlines.read_text() and ">pay-as-bid</text>" in text.read_text()


def test_a_reference_among_bars_is_a_line():
    rows = [{"a": name, "b": "budget 1", "y": 2.0, "y_low": 1.0, "y_high": 3.0} for name in "pq"]
    rows.append({"a": "p", "b": "first-best", "y": 1.5})
    (axis,) = figures.draw(rows, Plot("a", "y", "b", "", "error", bars=True), None).axes
    assert len(axis.patches) == 2
    (line,) = [line for line in axis.lines if line.get_label() == "first-best"]
    assert set(line.get_ydata()) == {1.5} and line.get_linestyle() == "--"


def test_differences_are_dots_with_intervals_and_those_that_decide_are_filled():
    rows = [
        {"label": label, "difference": at, "difference_low": at - 1, "difference_high": at + 1}
        for label, at in (("clear", -2.0), ("open", 0.5))
    ]
    (axis,) = draw_differences(rows, None).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == ["clear", "open"]
    dots, spans = axis.collections[1], axis.collections[0].get_segments()
    assert dots.get_offsets()[:, 0].tolist() == [-2.0, 0.5]
    assert [span[:, 0].tolist() for span in spans] == [[-3.0, -1.0], [-0.5, 1.5]]
    filled, hollow = dots.get_facecolors()
    assert filled[:3].tolist() != [1, 1, 1] and hollow[:3].tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="at least two"):
        draw_differences([], None)


def test_a_width_is_a_name_or_inches():
    assert [width_in_inches(text) for text in ("column", "page", "4.5")] == [3.4, 7.0, 4.5]
    with pytest.raises(InputError, match="column"):
        width_in_inches("wide")
    with pytest.raises(InputError, match="between"):
        FigureStyle(width=0.1)


def test_an_infinite_error_leaves_the_axis_finite(tmp_path):
    """A mechanism that never buys anything has an infinite error, and no place on the axis."""
    rows = [
        {"auction": name, "budget": budget, "error": error}
        for name, error in (("buys", 2.0), ("buys nothing", float("inf")))
        for budget in (0.5, 1.0)
    ]
    plot = Plot("budget", "error", "auction", "budget", "error", log=True)
    figures.draw(rows, plot, tmp_path / "figure.svg")
    assert "buys nothing" in (tmp_path / "figure.svg").read_text()
