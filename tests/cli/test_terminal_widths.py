"""Everything that commands print fits terminals of 60 to 200 columns, and no number is broken.

Lines that are meant to be copied (paths, next steps) are as long as they are.
"""

import re

import pytest
from typer.testing import CliRunner

from flmarket_sim.cli import output
from flmarket_sim.cli.app import app
from flmarket_sim.cli.study import show_finding
from flmarket_sim.scenario.shipped import scenario_path
from flmarket_sim.tables.cells import cell_of
from tests.support.made_up_findings import CASES, conclusion

WIDTHS = (60, 80, 120, 200)
COPIED = re.compile(r"^next: |^      flmarket |runs/|/tmp|in \S*/|^the table is in ")
NUMBER = r"-?(?:\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?|inf)"
HALF = re.compile(rf"\[{NUMBER},$|{NUMBER}\]?…|^\s*{NUMBER}\]")  # an interval that was broken
SMALL = [
    "--set", "rounds=2", "--set", "owners.count=20", "--set", "market.bidders=5",
    "--set", "model.name=none",
]  # fmt: skip
ABSURD = ["--set", "owners.rate=[1e11, 1e12]", "--set", "budget.factor=1e3"]
BUYERS = """
[[buyers]]
name = "a-buyer-with-quite-a-long-name"
auction = { name = "all-in" }

[[buyers]]
name = "another-buyer-with-quite-a-long-name"
auction = { name = "proportional-share" }
"""
SWEEP = """
[sweep]
seeds = 2

[sweep.grid]
"auction.name" = ["all-in", "all-in-critical", "proportional-share"]
"budget.factor" = [0.5, 1.0]
"""


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setattr(output.stdout, "width", request.param)
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("widths")
    text = scenario_path("quickstart").read_text()
    (place / "buyers.toml").write_text(text + BUYERS)
    (place / "sweep.toml").write_text(text + SWEEP)
    ran("run", "quickstart", *SMALL, "--out", place / "run")
    return place


def ran(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def fits(text, width):
    lines = [line for line in text.splitlines() if not COPIED.search(line)]
    assert lines
    for line in lines:
        assert len(line) <= width, line
        assert not HALF.search(line), line
        assert not re.search(r"\d{13}", line.replace(",", "")), line  # 28-digit sums


def test_a_run_of_one_buyer(width, folder):
    text = ran("run", "quickstart", *SMALL, "--out", folder / f"one-{width}")
    fits(text, width)
    assert "round" in text and "error" in text and "flmarket report" in text


def test_a_run_with_absurd_money(width, folder):
    text = ran("run", "quickstart", *SMALL, *ABSURD, "--out", folder / f"absurd-{width}")
    fits(text, width)
    assert "e+1" in text


def test_a_run_of_several_buyers_compares_them_in_one_table(width, folder):
    text = ran("run", folder / "buyers.toml", *SMALL, "--out", folder / f"buyers-{width}")
    fits(text, width)
    assert text.count("a-buyer-with") == 1 and text.count("another-buyer") == 1
    assert "Budgets go from" in text


def test_a_sweep_and_its_plan(width, folder):
    sweep = ("sweep", folder / "sweep.toml", *SMALL, "--out", folder / "sweep", "--workers", "1")
    fits(ran(*sweep, "--plan"), width)
    text = ran(*sweep)
    fits(text, width)
    assert "auction.name less all-in" in text


@pytest.mark.parametrize("name", CASES)
def test_the_finding_of_a_study(width, name, capsys):
    finding = conclusion(CASES[name], 3)
    show_finding(finding)
    text = capsys.readouterr().out
    fits(text, width)
    table = text.split("\n\n")[0]
    shown = finding.shown_columns()
    assert 3 <= len(shown) <= 10 and set(shown) <= set(finding.rows[0])
    first = (finding.shown_rows or finding.rows)[0]
    whole = [cell_of(first, name) for name in shown]
    measure = next(cell for cell in whole if "[" in cell)
    assert measure in table  # the first estimate is there with its whole interval
    show_finding(finding, wide=True)
    wide = capsys.readouterr().out
    assert "not shown" not in wide and all(cell in wide for cell in whole)


@pytest.mark.parametrize(
    "arguments",
    [
        ["sql", "run", "SELECT * FROM rounds"],
        ["sql", "run", "SELECT 1e30 AS money, 'text ' || repeat('x', 300) AS words"],
        ["list"],
        ["list", "auction"],
        ["list", "scenarios"],
        ["validate", "buyers.toml"],
        ["privacy", "ledger", "run"],
        ["privacy", "audit", "--draws", "100", "--one-by-one", "0", "--workers", "1"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_other_commands(width, folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    fits(ran(*arguments), width)


def test_what_is_left_out_is_named(folder, monkeypatch):
    monkeypatch.setattr(output.stdout, "width", 60)
    text = ran("sql", folder / "run", "SELECT * FROM rounds")
    assert re.search(r"^not shown: .* and \d+ more; see --wide$", text, re.MULTILINE)
    assert "balanced" in ran("sql", folder / "run", "SELECT * FROM rounds", "--wide")


@pytest.mark.parametrize("suffix", ["csv", "md", "tex", "parquet"])
def test_tables_go_to_files(folder, monkeypatch, tmp_path, suffix):
    monkeypatch.chdir(tmp_path)
    for name, arguments in {
        "run": ["run", "quickstart", *SMALL],
        "sweep": ["sweep", folder / "sweep.toml", *SMALL, "--workers", "1"],
        "sql": ["sql", folder / "run", "SELECT round, spent FROM rounds"],
        "list": ["list", "delays"],
        "ledger": ["privacy", "ledger", folder / "run"],
        "validate": ["validate", folder / "buyers.toml"],
    }.items():
        ran(*arguments, "--out", f"{name}.{suffix}")
        assert (tmp_path / f"{name}.{suffix}").stat().st_size > 20
    assert list((tmp_path / "runs").glob("quickstart-*/run.json"))  # the usual directory
    if suffix == "csv":
        lines = (tmp_path / "run.csv").read_text().splitlines()
        assert len(lines) == 3 and "error_bound" in lines[0]


def test_a_file_of_another_kind_is_refused_before_any_work(folder):
    result = CliRunner().invoke(app, ["sql", str(folder / "run"), "SELECT 1", "--out", "x.xlsx"])
    assert "--out names a file for a table" in str(result.exception)
