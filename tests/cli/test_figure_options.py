"""A table and a figure for a paper in one command."""

import pytest

from tests.support.command_line import flmarket
from tests.support.paths import ROOT

MARKET = (
    "--scenario", "scenarios/quickstart.toml", "--set", "market.bidders=4", "--set",
    "owners.count=8", "--profiles", "6", "--floor", "2",
)  # fmt: skip


def test_one_command_makes_a_table_and_figures_of_one_budget(tmp_path):
    table, figure, pairs = (tmp_path / name for name in ("t.tex", "f.pdf", "d.pdf"))
    done = flmarket(
        "evaluate", "all-in", "Ours=pay-as-bid", *MARKET, "--budgets", "1", "--out", table,
        "--figure", figure, "--difference-figure", pairs, "--width", "column", "--ylabel", "error",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Ours" in table.read_text() and r"\toprule" in table.read_text()
    for drawn in (figure, pairs):
        content = drawn.read_bytes()
        assert b"/FontFile2" in content and b"/Type3" not in content
        box = content[content.index(b"/MediaBox") :][:60].split(b"]")[0].split()
        assert float(box[-2]) == pytest.approx(3.4 * 72, abs=0.01)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--width", "wide", "column (3.4 inches)"),
        ("--width", "0.2", "between 1.5 and 30 inches"),
        ("--figure", "figure.gif", ".pdf, .svg, .png"),
        ("--name", "all-in", "NAME=TEXT"),
    ],
)
def test_a_wrong_figure_option_is_refused_before_anything_is_computed(option, value, words):
    refused = flmarket("evaluate", "all-in", *MARKET, option, value)
    assert refused.returncode == 2 and "Traceback" not in refused.stderr
    assert words in " ".join(refused.stderr.split())


def test_a_sweep_draws_its_means(tmp_path):
    scenario = (ROOT / "scenarios/quickstart.toml").read_text()
    axes = '\n[sweep]\nseeds = 2\n[sweep.grid]\n"budget.factor" = [0.5, 1.0]\n'
    (tmp_path / "sweep.toml").write_text(scenario + axes)
    figure = tmp_path / "figure.pdf"
    done = flmarket(
        "sweep", tmp_path / "sweep.toml", "--set", "rounds=1", "--workers", "1", "--out",
        tmp_path / "sweep", "--figure", figure, "--width", "column",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"/FontFile2" in figure.read_bytes()
