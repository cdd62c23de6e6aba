"""A whole league on a small card: its folder, its verdicts, a stop in the middle."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.league import measures
from flmarket_sim.league.players import CERTIFIED, REPORTED, everybody, players, records
from flmarket_sim.league.verdict import verdict

NAMES = ["pay-as-bid", "posted-price", "tests.support.mechanisms:Everybody"]
NOBODY = "tests.support.mechanisms:Nobody"
TIMED = {"milliseconds"}


@pytest.fixture(scope="module")
def played(small_card, tmp_path_factory):
    return fm.league(NAMES, tmp_path_factory.mktemp("played") / "league")


def untimed(folder):
    table = pq.read_table(folder / "rows.parquet")
    return repr(table.drop_columns(sorted(TIMED)).to_pylist())


def test_the_folder_has_tables_figures_and_hashes(played):
    folder = played.path
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "rows.parquet", "table.md", "table.csv", "table.tex", "league.png", "league.svg",
        "league.pdf", "study.json",
    }  # fmt: skip
    assert (folder / "league.pdf").read_bytes().startswith(b"%PDF")
    tex = (folder / "table.tex").read_text()
    assert tex.count(r"\\") == 1 + len(NAMES)
    assert [one.kind for one in fm.verify(folder)] == ["study"]


def test_a_changed_table_is_found(played, tmp_path):
    folder = Path(shutil.copytree(played.path, tmp_path / "copy"))
    (folder / "table.csv").write_text("changed")
    assert "table.csv" in str(fm.verify(folder)[0].damaged)


def test_a_row_for_each_market_and_one_over_the_card(played):
    rows = played.finding.rows
    assert len(rows) == len(NAMES) * 3
    whole = {row["auction"]: row for row in rows if row["market"] == "whole card"}
    assert whole["pay-as-bid"]["gain"] > 0.1 > whole["posted-price"]["gain"]
    assert whole[NAMES[2]]["underpaid"] > 0.01
    assert whole["posted-price"]["played"] == whole["posted-price"]["markets"] == 2
    assert 0 < whole["posted-price"]["accuracy"] <= 1
    # one buys nothing in one of six draws, the other underpays
    assert [row["place"] for row in rows[: len(NAMES)]] == [1, None, None]
    assert whole["posted-price"]["most_invalid"] == pytest.approx(1 / 6)
    assert {(row["card"], row["size"]) for row in rows} == {(7, "full")}
    sentences = " ".join(played.finding.sentences)
    assert "Card 7 of the league" in sentences
    assert "Everybody: its error is" in sentences


def test_a_stopped_league_continues(small_card, tmp_path, monkeypatch):
    calls = []
    real = measures.TESTS["lies"]

    def counted(name, *rest):
        calls.append(name)
        if name == "posted-price" and "stopped" not in calls:
            calls.append("stopped")
            raise KeyboardInterrupt
        return real(name, *rest)

    monkeypatch.setitem(measures.TESTS, "lies", counted)
    with pytest.raises(KeyboardInterrupt):
        fm.league(NAMES, tmp_path / "league")
    fm.league(NAMES, tmp_path / "league")
    assert calls.count("pay-as-bid") == 1  # what was measured is kept
    monkeypatch.undo()


def test_two_leagues_differ_in_their_times_alone(played, small_card, tmp_path):
    again = fm.league(NAMES, tmp_path / "again")
    assert untimed(again.path) == untimed(played.path)


def test_the_quick_size_searches_less(small_card, tmp_path):
    rows = fm.league(["clock"], tmp_path / "quick", quick=True).finding.rows
    assert {row["market"] for row in rows} == {"whole card", "plain", "unsearched"}


def test_who_plays():
    assert players(["all", "clock", "my.py:Mine"])[-1] == "my.py:Mine"
    assert players(["clock", "clock"]) == ["clock"]
    assert {"seq-price", "gravin-3", "m-regretnet"} <= set(everybody())
    assert len(everybody()) >= 24
    assert "mfg-regretnet" not in everybody()  # it needs a file


def test_a_mechanism_says_how_it_knows_records():
    certified = [name for name in everybody() if records(name) == CERTIFIED]
    assert certified == [
        "contract-menu", "dm-regretnet", "m-regretnet", "record-price", "regretnet", "seq-price",
        "virtual-cost",
    ]  # fmt: skip
    assert records("mfg-regretnet@gone.safetensors") == REPORTED  # by its class
    assert records("mine=seq-price[size=certified]") == CERTIFIED


def test_the_table_marks_certified_records(small_card, tmp_path):
    played = fm.league(["contract-menu", "clock"], tmp_path / "league", quick=True)
    marked = {row["auction"]: row["records"] for row in played.finding.rows[:2]}
    assert marked == {"contract-menu": CERTIFIED, "clock": REPORTED}
    assert "certified" in (played.path / "table.csv").read_text()


def test_an_unknown_mechanism_stops_before_anything_is_played(small_card, tmp_path):
    with pytest.raises(InputError, match="no-such"):
        fm.league(["no-such"], tmp_path / "league")
    assert not (tmp_path / "league").exists()


def test_verdicts_name_what_is_notable():
    row = {
        "auction": "mine", "over_floor": 1.25, "over_floor_low": 1.2, "over_floor_high": 1.3,
        "gain": 0.4, "gain_least": 0.1, "gain_most": 0.7, "gaining": 0.5, "underpaid": 0.02,
        "underpaid_owners": 0.33, "invalid": 0.1, "most_invalid": 0.3, "played": 7, "markets": 9,
    }  # fmt: skip
    said = verdict(row)
    assert said.startswith(
        "mine: its error is 1.25 [1.20, 1.30] times the floor; a lie gains 40% of cost on average "
        "(10% to 70% by market; 50% of owners gain); what owners are paid too little adds up to "
        "2.0% of cost (33% of sellers are underpaid)"
    )
    for part in ("nothing in 10.0% of markets", "7 of 9 markets", "so it has no place"):
        assert part in said
    best = row | {"gain": 0.0, "underpaid": 0.0, "invalid": 0.0, "most_invalid": 0.0, "played": 9}
    assert verdict(best).endswith("the best lies found gain 0.00% of cost")
    certified = best | {"records": CERTIFIED}
    assert verdict(certified).endswith("gain 0.00% of cost, with certified records")
    assert "50% of owners gain), with certified records;" in verdict(row | {"records": CERTIFIED})
    assert "its error is 1.25 times the floor" in verdict(row | {"over_floor_low": None})
    assert "no error over the floor" in verdict({"auction": "mine", "over_floor": None})
    assert "trained no model (a reason)" in verdict(best | {"why_not": "a reason"})


def test_a_mechanism_that_never_buys_has_a_row_and_no_place(small_card, tmp_path):
    (whole, *_) = fm.league([NOBODY], tmp_path / "league", quick=True).finding.rows
    assert whole["invalid"] == 1.0
    assert whole["over_floor"] is None
    assert whole["place"] is None
