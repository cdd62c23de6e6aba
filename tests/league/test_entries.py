"""Entries: small files that a pull request adds and a test can check."""

import json

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.league import entries
from flmarket_sim.league.card import card
from flmarket_sim.league.league_rows import whole_row
from flmarket_sim.league.places import in_order, why_no_place
from flmarket_sim.league.players import everybody
from tests.support.sealed_json import write_sealed


@pytest.fixture(scope="module")
def rows():
    """What the league says of `clock`: one market as it is, as if all of the card were like it."""
    now = entries.repeated("clock", "quick") | {"auction": "clock", "why_not": None}
    each = [
        now | {"market": market.name, "gain": 0.1 * place}
        for place, market in enumerate(card().markets)
    ]
    return [whole_row("clock", each, []), *each]


def test_an_entry_is_what_was_measured(rows, tmp_path):
    entry = entries.entry_of("clock", rows, "quick")
    path = tmp_path / "clock.json"
    entries.write_entry(path, entry)
    assert entries.read_entry(path)["whole"]["over_floor"] == rows[0]["over_floor"]
    assert "rest_error" not in entry["whole"]  # it was not measured
    assert set(entry["markets"]["iid"]) >= set(entries.REPEATED)
    entries.check_entry(path)
    assert path.stat().st_size < 5_000


@pytest.mark.parametrize("key", entries.REPEATED)
def test_what_cannot_be_repeated_is_refused(rows, tmp_path, key):
    entry = entries.entry_of("clock", rows, "quick")
    entry["markets"]["iid"] = entry["markets"]["iid"] | {key: entry["markets"]["iid"][key] + 1e-3}
    write_sealed(tmp_path / "clock.json", entry)
    with pytest.raises(InputError, match=rf"says that {key} is .* and now it is"):
        entries.check_entry(tmp_path / "clock.json")


@pytest.mark.parametrize("key", entries.FOLLOWING)
def test_a_forged_row_over_the_card_is_refused(rows, tmp_path, key):
    entry = entries.entry_of("clock", rows, "quick")
    for forged in (entry["whole"][key] * 0.99 - 1e-3, None):
        whole = {name: value for name, value in entry["whole"].items() if name != key}
        whole |= {} if forged is None else {key: forged}
        write_sealed(tmp_path / "clock.json", entry | {"whole": whole})
        with pytest.raises(InputError, match=rf"{key} is .* over the card, and now it is"):
            entries.check_entry(tmp_path / "clock.json")


def test_a_gain_that_no_market_has_is_refused(rows, tmp_path):
    searched = [{key: value for key, value in row.items() if "gain" not in key} for row in rows]
    entry = entries.entry_of("clock", searched, "quick")
    write_sealed(tmp_path / "clock.json", entry | {"whole": entry["whole"] | {"gain": 0.0}})
    with pytest.raises(InputError, match=r"gain is 0.0 over the card, and now it is None"):
        entries.check_entry(tmp_path / "clock.json")


def test_an_entry_of_the_easy_markets_only_is_refused(rows, tmp_path):
    few = [row for row in rows[1:] if row["market"] in ("iid", "rich")]
    entry = entries.entry_of("clock", [whole_row("clock", few, []), *few], "quick")
    write_sealed(tmp_path / "clock.json", entry)
    with pytest.raises(InputError, match="has the markets iid, rich, and the card has iid, noniid"):
        entries.check_entry(tmp_path / "clock.json")


@pytest.mark.parametrize("name", ["no-such-mechanism", "gone.py:Mine", "mfg-regretnet@gone"])
def test_an_entry_of_a_mechanism_that_is_not_there_is_refused(rows, tmp_path, name):
    entry = entries.entry_of("clock", rows, "quick") | {"mechanism": name}
    write_sealed(tmp_path / "clock.json", entry)
    with pytest.raises(InputError):
        entries.check_entry(tmp_path / "clock.json")


def test_an_entry_with_a_label_can_be_repeated(rows, tmp_path):
    asked = "cheap=clock"
    own = [row | {"auction": "cheap"} for row in rows]
    entry = entries.entry_of(asked, own, "quick")
    assert (entry["auction"], entry["mechanism"]) == ("cheap", "clock")
    entries.write_entry(tmp_path / "cheap.json", entry)
    entries.check_entry(tmp_path / "cheap.json")


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: {key: entry[key] for key in ("card", "card_sha256")},
        lambda entry: entry | {"markets": 5},
        lambda entry: entry | {"size": "huge"},
    ],
)
def test_an_entry_of_another_shape_is_refused(rows, tmp_path, damage):
    entry = entries.entry_of("clock", rows, "quick")
    write_sealed(tmp_path / "clock.json", damage(entry))
    with pytest.raises(InputError, match="is damaged"):
        entries.read_entry(tmp_path / "clock.json")


def test_an_entry_without_a_seal_is_refused(rows, tmp_path):
    path = tmp_path / "clock.json"
    path.write_text(json.dumps(entries.entry_of("clock", rows, "quick")))
    with pytest.raises(InputError, match="it has no 'content_sha256'"):
        entries.read_entry(path)


def test_a_damaged_entry_is_refused(rows, tmp_path):
    path = tmp_path / "clock.json"
    entries.write_entry(path, entries.entry_of("clock", rows, "quick"))
    path.write_text(path.read_text().replace('"spent": 0.', '"spent": 1.'))
    with pytest.raises(InputError, match="damaged"):
        entries.read_entry(path)


def test_an_entry_of_another_card_is_refused(rows, tmp_path):
    entry = entries.entry_of("clock", rows, "quick") | {"card": 0, "card_sha256": "0" * 64}
    path = tmp_path / "clock.json"
    write_sealed(path, entry)
    with pytest.raises(InputError, match="entry of card 0, and this version plays card 2"):
        entries.read_entry(path)


def test_places_are_among_those_who_buy_and_pay():
    good = {"played": 2, "markets": 2, "most_invalid": 0.0, "underpaid": 0.0}
    made = [
        {"auction": "a", "whole": good | {"over_floor": 1.1}},
        {"auction": "b", "whole": good | {"over_floor": 1.3}},
        {"auction": "underpays", "whole": good | {"over_floor": 0.5, "underpaid": 0.2}},
        {"auction": "shy", "whole": good | {"over_floor": 0.9, "most_invalid": 0.5}},
        {"auction": "elsewhere", "whole": good | {"over_floor": 0.9, "played": 1}},
        {"auction": "never", "whole": good | {"most_invalid": 1.0}},
    ]
    mine = {"auction": "mine", "whole": good | {"over_floor": 1.2}}
    assert entries.place_among(mine, made) == 2
    assert entries.place_among({"auction": "mine", "whole": made[3]["whole"]}, made) is None
    placed = in_order([entry["whole"] for entry in made])
    assert [row["place"] for row in placed] == [1, 2, None, None, None, None]
    assert why_no_place(made[3]["whole"]) == "buys nothing in 50.0% of the draws of one market"
    assert why_no_place(made[0]["whole"]) == ""


def test_names_of_entries_have_no_folders():
    assert entries.label_of("/a/b/mine.py:Mine") == "mine.py:Mine"
    assert entries.label_of("mfg-regretnet@/a/b/net.safetensors") == "mfg-regretnet@net"
    assert entries.file_name("package.mine:Mine") == "package.mine-Mine.json"
    assert entries.file_name("clock") == "clock.json"


def test_every_built_in_mechanism_has_an_entry():
    known = {entry["auction"] for entry in entries.shipped_entries()}
    assert set(everybody()) <= known


@pytest.mark.parametrize("path", entries.shipped_paths(), ids=lambda path: path.stem)
def test_entries_that_come_with_the_package_can_be_repeated(path):
    name = str(json.loads(path.read_text())["auction"])
    assert path.name == entries.file_name(name)
    if "@" in name:  # weights of others do not come with the package
        entries.check_sums(path, entries.read_entry(path))
    else:
        entries.check_entry(path)
