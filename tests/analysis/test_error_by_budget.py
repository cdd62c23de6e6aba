"""The figure of errors by budget: every built-in auction has a line in one of its panels."""

import pytest
from matplotlib.figure import Figure

from analysis import error_by_budget as figure
from flmarket_sim.league.players import everybody


@pytest.fixture(scope="module")
def stored():
    return figure.read_csv(figure.TARGET.with_suffix(".csv"))


def test_every_auction_has_its_place_in_both_markets_at_every_budget(stored):
    wanted = {*everybody(), figure.FIRST_BEST}
    places = {(row["market"], row["auction"], row["budget_factor"]) for row in stored}
    factors = {row["budget_factor"] for row in stored}
    assert len(factors) == 10
    assert places == {
        (market, name, factor)
        for market in ("IID", "non-IID")
        for name in wanted
        for factor in factors
    }


def test_errors_stand_inside_their_intervals(stored):
    for row in stored:
        if row["invalid_rate"] < 0.9:
            assert row["error_bound_low"] <= row["error_bound"] <= row["error_bound_high"]


def test_families_are_the_rooms_of_the_auctions():
    families = {name: figure.family(name) for name in everybody()}
    assert families["gravin-3"] == "procurement"
    assert families["shapley-pay"] == "privacy markets"
    assert families["record-price"] == "learned"
    assert families["clock"] == families["all-in"] == "textbook"
    for family in figure.FAMILIES.values():
        members = sum(one == family for one in families.values())
        assert 4 <= members <= len(figure.LINES), "a panel has a colour for each line"


def test_a_cell_can_be_measured_again(stored):
    again = figure.measured(["clock", "gravin-3"], figure.PROFILES, "study.factors=[0.5]")
    assert len(again) == 6
    for row in again:
        (known,) = (one for one in stored if all(one[key] == row[key] for key in figure.KEYS))
        assert known == row


def test_every_auction_has_a_coloured_line_in_the_panel_of_its_family(stored, tmp_path):
    lines = {
        name: figure._line(stored, "IID", name)
        for name in dict.fromkeys(row["auction"] for row in stored)
    }
    for title in figure.FAMILIES.values():
        axis = Figure().subplots()
        figure._panel(axis, lines, title)
        labels = axis.get_legend_handles_labels()[1]
        own = {name for name in everybody() if figure.family(name) == title}
        assert sorted(labels) == sorted(own | {figure.BEST_TRUTHFUL, figure.FIRST_BEST})
        assert len(axis.get_lines()) == len(lines)
    figure.draw(stored, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


def test_what_nobody_sells_at_is_an_empty_cell(tmp_path):
    row = dict.fromkeys(figure.NUMBERS, float("nan")) | {"invalid_rate": 1.0}
    kept = {"market": "IID", "auction": "clock", "budget_factor": 0.1} | figure._rounded(row)
    assert kept["error_bound"] is None
    figure.write_csv([kept], tmp_path / "some.csv")
    assert figure.read_csv(tmp_path / "some.csv") == [kept]
