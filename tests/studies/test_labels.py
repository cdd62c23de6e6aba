"""Labels of auctions reach tables, figures and sentences; duplicates are told apart."""

import json

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.report.evaluation_table import factors
from flmarket_sim.studies.study import Finding, Plot
from flmarket_sim.studies.study_run import find_out, labelled
from tests.support.command_line import flmarket, json_output

PRICES = ["cheap=posted-price[price=0.5]", "posted-price[price=2]", "all-in"]


def test_several_of_one_mechanism_stand_side_by_side(tmp_path):
    found = fm.evaluate(PRICES, "quickstart", budgets=[0.5, 1.0], profiles=4, market__bidders=4)
    rows = found.rows
    labels = [row["label"] for row in rows[:3]]
    assert labels == ["cheap", "posted-price[price=2]", "all-in"]
    assert rows[0]["error_bound"] != rows[1]["error_bound"]
    found.plot(tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    assert "cheap" in drawn and "cheap=" not in drawn and "posted-price[price=2]" in drawn


def test_the_rows_and_sentences_of_a_study_have_labels():
    study = {"name": "misreport-gain", "auctions": PRICES[:2], "profiles": 2, "effort": "quick"}
    finding = find_out(fm.load_scenario("quickstart", market__bidders=3, study=study))
    names = {row["auction"] for row in finding.rows}
    assert names == {"cheap", "posted-price[price=2]"}
    assert any(sentence.startswith("cheap") for sentence in finding.sentences)
    assert not any("cheap=" in sentence for sentence in finding.sentences)


def test_auctions_with_one_label_are_told_apart():
    rows = [{"auction": name, "y": 1.0} for name in ("x=all-in", "x=clock", "z=clock")]
    plot = Plot("x", "y", "auction", "x", "y")
    found = labelled(Finding(rows, plot, ["x=all-in beats z=clock"]))
    assert [row["auction"] for row in found.rows] == ["x=all-in", "x=clock", "z"]
    assert found.sentences == ["x=all-in beats z"]


def test_a_study_in_markets_takes_options(tmp_path):
    """Studies that run whole markets make the [auction] table of the text."""
    from flmarket_sim.experiments.market_runs import auction_table, changed

    table = auction_table("cheap=posted-price[price=0.5]")
    market = changed(fm.load_scenario("quickstart"), auction=table)
    assert market.auction.options == {"price": 0.5}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.5,1,2", [0.5, 1.0, 2.0]),
        ("0.5, 1", [0.5, 1.0]),
        ("2,1,2", [2.0, 1.0]),
        ("1", [1.0]),
        ("0.5:1.5:0.5", [0.5, 1.0, 1.5]),
        ("uniform", None),
    ],
)
def test_budgets_are_a_list_a_range_or_a_number(text, numbers):
    assert factors(text) == numbers


@pytest.mark.parametrize("text", ["0.5,,1", "0,1", "1,inf", "1:2", "1,2:3:4", "nan", "", "1;2"])
def test_other_budgets_are_refused(text):
    with pytest.raises(InputError, match="numbers above 0 with commas between them"):
        factors(text)


def test_too_many_budgets_are_refused():
    with pytest.raises(InputError, match="1,001 factors; 1,000 are the most"):
        factors(",".join(map(str, range(1, 1002))))


def test_probe_and_audit_take_options_and_labels(tmp_path):
    text = "cheap=posted-price[price=0.5]"
    few = ("--scenario", "quickstart", "--set", "market.bidders=3", "--profiles", "2")
    few += ("--effort", "quick", "--budgets", "0.5,1")
    printed = flmarket("probe", text, *few, "--workers", "1", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert "cheap" in printed.stdout and "cheap=" not in printed.stdout
    audited = flmarket("audit", text, "--markets", "5", "--json", "--workers", "1", cwd=tmp_path)
    assert json.loads(audited.stdout)["auction"] == "cheap"
    assert json_output("probe", text, *few, "--workers", "1", "--json", cwd=tmp_path)["by_budget"]
