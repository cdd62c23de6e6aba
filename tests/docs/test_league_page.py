"""docs/league.md is made from the card, its columns and the entries."""

import re

import numpy as np
import pytest

from docs import certified_records, league_page, page_numbers
from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction import certified_parts
from flmarket_sim.league import entries
from flmarket_sim.league.card import card
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.league_columns import COLUMNS
from flmarket_sim.league.players import CERTIFIED, REPORTED, everybody, records
from flmarket_sim.strategy.search import best_reports


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


def test_the_table_says_how_each_mechanism_knows_records():
    table = league_page.table(entries.shipped_entries())
    for entry in entries.shipped_entries():
        kind = records(entry["mechanism"])
        assert re.search(rf"\| {re.escape(entry['auction'])}[^|]* \| {kind} \|", table)
    assert table.count(f"| {CERTIFIED} |") == 7


def test_every_built_in_mechanism_was_probed_with_both_kinds_of_records():
    rows = page_numbers.rows(certified_records.SOURCE)
    assert sorted((row["auction"], row["records"]) for row in rows) == sorted(
        (name, kind) for name in everybody() for kind in (CERTIFIED, REPORTED)
    )
    assert all(row["own"] == records(row["auction"]) for row in rows)


def test_gains_as_played_are_those_of_the_full_card():
    compared = 0
    for entry in entries.shipped_entries():
        if entry["size"] == "full" and entry["auction"] in everybody():
            name, market = entry["auction"], certified_records.MARKET
            where = {"auction": name, "records": records(name)}
            (row,) = page_numbers.rows(certified_records.SOURCE, **where)
            if (row["draws"], row["effort"]) == certified_records.SEARCH:
                compared += 1
                assert entry["markets"][market]["gain"] == pytest.approx(
                    row["gain"], rel=1e-4, abs=1e-6
                )
    assert compared > 10


def test_the_kind_of_records_decides_which_lies_are_tried():
    market = card().market(certified_records.MARKET)
    truth, budget = draws(card(), market, 4)
    auction, owner = named("vcg-k"), np.zeros(len(budget), int)
    sizes = {}
    for kind in (CERTIFIED, REPORTED):
        other = certified_records.with_records(auction, kind)
        found = best_reports(other, truth, truth.bids(), budget, owner)
        sizes[kind] = found.data_size / truth.data_size[:, 0]
    assert (sizes[CERTIFIED] == 1).all()
    assert (sizes[REPORTED] < 1).any()
    assert certified_parts(auction) == ()  # the mechanism itself stays as it is
