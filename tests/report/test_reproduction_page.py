"""The page of the paper's results replaces what is there, and writes through no link."""

import os

from flmarket_sim.paper.reproduction import Reproduced
from flmarket_sim.report import reproduction_page
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.studies.study import Finding, Plot
from tests.support.paths import ROOT

SCENARIO = ROOT / "scenarios/paper/error-bound.toml"

ROWS = [
    {"market": "IID", "auction": "all-in", "rule": rule, "budget_factor": factor,
     "profiles": 2, "error_bound": 1 / factor}
    for rule in ("opt-aggr", "convl-aggr")
    for factor in (0.5, 1.0)
]  # fmt: skip


def test_links_in_the_place_of_files_are_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduction_page, "verdicts", lambda name, rows: [])
    plot = Plot(x="budget_factor", y="error_bound", group="rule", x_label="budget", y_label="ERR")
    finding = Finding(rows=ROWS, sentences=[], plot=plot)
    result = Reproduced("error-bound", load_scenario(SCENARIO), finding, 1.0, quick=True)
    (tmp_path / "precious").write_text("keep me")
    (tmp_path / "page").mkdir()
    names = [f"page/error-bound.{end}" for end in ("parquet", "csv", "png", "svg", "pdf")]
    for name in ("page.md", *names):
        os.symlink(tmp_path / "precious", tmp_path / name)
    reproduction_page.write([result], tmp_path / "page.md", "the command")
    assert (tmp_path / "precious").read_text() == "keep me"
    assert not any((tmp_path / name).is_symlink() for name in ("page.md", *names))
    assert all((tmp_path / name).stat().st_size > 50 for name in ("page.md", *names))
    assert (tmp_path / "page/error-bound.csv").read_bytes().count(b"\r\n") == 5
