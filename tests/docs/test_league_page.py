"""docs/league.md is made from the card, its columns and the entries."""

from docs import league_page
from flmarket_sim.league import entries
from flmarket_sim.league.card import card
from flmarket_sim.league.league_columns import COLUMNS


def test_the_made_parts_are_those_of_the_entries():
    text = league_page.PAGE.read_text()
    assert league_page.page(text) == text, "run 'python -m docs.league_page'"


def test_every_market_every_column_and_every_entry_is_on_the_page():
    text = league_page.PAGE.read_text()
    assert all(f"`{market.name}`" in text for market in card().markets)
    assert all(f"`{column.name}`" in text for column in COLUMNS)
    assert all(f"| {entry['auction']}" in text for entry in entries.shipped_entries())
    assert league_page.FIGURE.exists()


def test_entries_of_other_people_stay_when_a_league_is_taken_over(tmp_path, monkeypatch):
    other = tmp_path / "somebody-s.json"
    other.write_text("{}")
    monkeypatch.setattr(league_page, "ENTRIES", tmp_path)
    monkeypatch.setattr(league_page, "FIGURE", tmp_path / "league.svg")
    league_page.take([])
    assert other.exists()
