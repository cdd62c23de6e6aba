"""Panels share their scales, and none of them is cut."""

import matplotlib.pyplot as plt

from flmarket_sim.report import figures
from flmarket_sim.studies.study import Plot


def test_a_logarithmic_axis_shows_every_panel_whole(tmp_path, monkeypatch):
    limits, close = [], plt.close

    def look_and_close(figure):
        limits.extend(axis.get_ylim() for axis in figure.axes)
        close(figure)

    monkeypatch.setattr(plt, "close", look_and_close)
    rows = [
        {"x": x, "y": y, "y_low": 0.0, "y_high": 1.5 * y, "g": "a", "p": p}
        for p, y in (("low", 2.0), ("high", 60.0))
        for x in (1, 2)
    ]
    figures.draw(rows, Plot("x", "y", "g", "", "", log=True, panel="p"), tmp_path / "figure.png")
    assert len(limits) == 2 and all(0 < low < 2 and high > 90 for low, high in limits)
