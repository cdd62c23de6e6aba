"""Entries: small files that a pull request adds and a test can check."""

import json

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.league import entries, measures
from flmarket_sim.league.card import card
from flmarket_sim.league.players import everybody
from tests.support.sealed_json import write_sealed


@pytest.fixture
def rows():
    whole = {"auction": "clock", "market": "whole card", "over_floor": 1.23456789, "gain": None}
    return [whole, {"auction": "clock", "market": "iid", "over_floor": 2.0, "why_not": None}]


def test_an_entry_is_what_was_measured(rows, tmp_path):
    entry = entries.entry_of("clock", rows, "quick")
    path = tmp_path / "clock.json"
    entries.write_entry(path, entry)
    assert entries.read_entry(path)["whole"] == {"over_floor": 1.23457}
    assert entry["markets"] == {"iid": {"over_floor": 2.0}}
    assert set(entry["sample"]) == set(entries.REPEATED)
    entries.check_entry(path)
    assert path.stat().st_size < 5_000


def test_a_sample_that_cannot_be_repeated_is_refused(rows, tmp_path):
    entry = entries.entry_of("clock", rows, "quick")
    entry["sample"]["error"] *= 1.001
    path = tmp_path / "clock.json"
    write_sealed(path, entry)
    with pytest.raises(InputError, match=r"says that error is .* and now it is"):
        entries.check_entry(path)


def test_a_damaged_entry_is_refused(rows, tmp_path):
    path = tmp_path / "clock.json"
    entries.write_entry(path, entries.entry_of("clock", rows, "quick"))
    path.write_text(path.read_text().replace("1.23457", "1.13457"))
    with pytest.raises(InputError, match="damaged"):
        entries.read_entry(path)


def test_an_entry_of_another_card_is_refused(rows, tmp_path):
    entry = entries.entry_of("clock", rows, "quick") | {"card": 0, "card_sha256": "0" * 64}
    path = tmp_path / "clock.json"
    write_sealed(path, entry)
    with pytest.raises(InputError, match="entry of card 0, and this version plays card 1"):
        entries.read_entry(path)


def test_places_are_by_the_error_over_the_floor():
    made = [{"auction": name, "whole": {"over_floor": over}} for name, over in
            (("a", 1.1), ("b", 1.3), ("c", None))]  # fmt: skip
    mine = {"auction": "mine", "whole": {"over_floor": 1.2}}
    assert entries.place_among(mine, made) == 2
    assert entries.place_among({"auction": "mine", "whole": {}}, made) == 3


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
    if "@" not in name:  # weights of others do not come with the package
        entries.check_entry(path)


def test_the_sample_is_quick_to_repeat():
    found = entries.sample_of("proportional-share", card())
    sizes = card().sizes["quick"].model_copy(update={"decisions": entries.DRAWS})
    again = measures.decisions("proportional-share", card(), card().market("iid"), sizes)
    assert found == {key: again[key] for key in entries.REPEATED}
