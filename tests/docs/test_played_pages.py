"""The tutorial is played as a reader would, and the code of the gallery makes its pictures."""

import re

import pytest

from docs import gallery, tutorial

SECONDS = re.compile(r"in [\d.]+ s\b")


def same(shown, printed):
    """The same words, and numbers that differ by rounding at most."""
    ones, others = (SECONDS.sub("in a moment", text).split() for text in (shown, printed))
    return len(ones) == len(others) and all(map(close, ones, others))


def close(one, other):
    try:
        a, b = (float(re.sub(r"[\[\],%]", "", word)) for word in (one, other))
    except ValueError:
        return one == other
    return abs(a - b) <= 0.05 * max(abs(a), abs(b))


def test_the_tutorial_prints_what_it_shows(tmp_path):
    text = tutorial.PAGE.read_text()
    played = tutorial.play(text, tmp_path)
    assert text.count("<!-- output:") >= 4
    assert same(text, played), "run 'python -m docs.tutorial'"
    assert "\\begin{tabular}" in (tmp_path / "table.tex").read_text()
    assert (tmp_path / "first/report.html").exists()


def test_another_output_would_be_noticed():
    assert same("spent 1,000 in 3.2 s", "spent 1,001 in 9.9 s")
    assert not same("spent 1,000", "spent 1,200")
    assert not same("holds", "refuted")


@pytest.mark.parametrize("picture", gallery.blocks())
def test_the_code_of_a_picture_makes_it(picture, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert gallery.draw(picture, tmp_path).stat().st_size > 5_000
    assert f"]({picture})" in gallery.PAGE.read_text()
    assert (gallery.PAGE.parent / picture).exists()
