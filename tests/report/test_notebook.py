"""Tables and figures inside a notebook."""

import io
import sys

import pyarrow as pa
import pytest
from PIL import Image

from flmarket_sim.errors import FlmarketError
from flmarket_sim.report import notebook
from flmarket_sim.studies.study import Plot

ROWS = [
    {
        "auction": "all-in",
        "gain": 0.12345,
        "gain_low": 0.1,
        "gain_high": 0.2,
        "spent": 12345.6,
        "pairs": 8,
    },
    {
        "auction": "<b>evil</b>",
        "gain": -0.0,
        "gain_low": float("nan"),
        "gain_high": float("nan"),
        "spent": None,
        "pairs": 10,
    },
]


@pytest.fixture
def shown(monkeypatch):
    """What a notebook would show."""
    found = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: found.append(data))
    return found


def test_an_estimate_and_its_interval_are_one_cell():
    lines = repr(notebook.table(ROWS)).splitlines()
    assert lines[0].split() == ["auction", "gain", "spent", "pairs"]
    assert lines[1].split(maxsplit=1) == ["all-in", "0.123 [0.100, 0.200]  12,346      8"]
    assert lines[2].split() == ["<b>evil</b>", "0", "10"]


def test_a_table_in_a_notebook_has_names_and_no_markup_of_theirs():
    text = notebook.table(pa.Table.from_pylist(ROWS), ["auction", "pairs"])._repr_html_()
    assert "&lt;b&gt;evil" in text and "<b>" not in text and text.count("<td>") == 4


def test_an_empty_table_is_a_table():
    assert repr(notebook.table([])) == "" and "<table>" in notebook.table([])._repr_html_()


def test_a_figure_is_shown_with_words_in_its_place_and_twice_the_same(shown):
    for _ in range(2):
        with notebook.axes("a line") as axis:
            axis.plot([0, 1], [0, 1])
    first, second = shown
    assert first["text/plain"] == "a line" and first["image/png"] == second["image/png"]
    assert Image.open(io.BytesIO(first["image/png"])).size == (975, 630)


def test_a_plot_of_a_study_is_drawn_in_place(shown):
    plot = Plot("x", "y", "group", "x", "y", bars=True)
    notebook.draw(
        [{"x": "one", "y": 1.0, "group": "a"}, {"x": "one", "y": 2.0, "group": "b"}],
        plot,
        "two bars",
    )
    assert shown[0]["text/plain"] == "two bars" and shown[0]["image/png"].startswith(b"\x89PNG")


def test_without_ipython_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(FlmarketError, match="notebooks"), notebook.axes("nothing"):
        pass
