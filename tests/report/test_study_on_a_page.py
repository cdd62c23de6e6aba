"""A study's figure is drawn by the page, from its rows and its plot."""

import json
import shutil

import pytest

from flmarket_sim.report import study_folder
from flmarket_sim.report.html import page
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.study import Finding, Plot
from tests.support.paths import ROOT
from tests.support.sealed_json import write_sealed

from .page_data import chart, data_of


def test_the_study_s_plot_decides_panels_scales_and_lines(tmp_path):
    """What the study drew for its own figure is what the page draws, in the page's theme."""
    rows = [
        {"auction": name, "budget": x, "error": x + k, "panel": panel, "other": 1.0}
        for panel in ("few", "many")
        for k, name in enumerate(("all-in", "first-best"))
        for x in (1.0, 10.0)
    ]
    plot = Plot(
        "budget", "error", "auction", "budget factor", "error", log=True, log_x=True, level=1.0,
        panel="panel", top=9.0,
    )  # fmt: skip
    scenario = load_scenario(ROOT / "scenarios/studies/false-names.toml")
    study_folder.write(Finding(rows[:1], plot, drawn=rows), tmp_path, scenario)
    few, many = data_of(page.make([tmp_path]))["charts"]
    assert (few["title"], many["title"]) == ("few", "many")
    assert few["x_log"] and few["y_log"] and few["level"] == 1.0 and few["y_top"] == 9.0
    assert [one["reference"] for one in few["series"]] == [False, True]
    assert few["series"][0]["points"] == [[1.0, 1.0, None, None], [10.0, 10.0, None, None]]


@pytest.mark.parametrize("plot", [None, {}, {"x": 3}, {"x": "gone", "y": "gain"}, "text"])
def test_a_study_without_a_plot_that_fits_shows_its_picture(study, tmp_path, plot):
    folder = tmp_path / "older"
    shutil.copytree(study, folder)
    facts = json.loads((folder / "study.json").read_text()) | {"plot": plot}
    write_sealed(folder / "study.json", facts)
    data = data_of(page.make([folder]))
    assert data["pictures"][0]["address"].startswith("data:image/svg+xml;base64,")
    assert chart(data, "study-gain")["kind"] == "line"
