"""What users type to name an auction is read in one place."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction_name import AuctionName, auction_labels
from flmarket_sim.errors import InputError


@pytest.mark.parametrize(
    ("text", "table", "label"),
    [
        ("all-in", {"name": "all-in"}, "all-in"),
        ("seq-price@general", {"name": "seq-price", "weights": "general"}, "seq-price@general"),
        (
            "seq-price@runs/a.b/mine.safetensors",
            {"name": "seq-price", "weights": "runs/a.b/mine.safetensors"},
            "seq-price@mine",
        ),
        ("module:Class", {"name": "module:Class"}, "module:Class"),
        ("path/to/file.py:Class", {"name": "path/to/file.py:Class"}, "file.py:Class"),
        ("me@home/file.py:Class", {"name": "me@home/file.py:Class"}, "file.py:Class"),
        (
            "file.py:Class@w.pt[option=3]",
            {"name": "file.py:Class", "weights": "w.pt", "option": 3},
            "file.py:Class@w[option=3]",
        ),
        ("posted-price[price=2]", {"name": "posted-price", "price": 2}, "posted-price[price=2]"),
        (
            "x[a=2.5, b=word, c='a, ]b', d=[1, 2], e=true, f={g=1}]",
            {
                "name": "x", "a": 2.5, "b": "word", "c": "a, ]b", "d": [1, 2], "e": True,
                "f": {"g": 1},
            },
            "x[a=2.5, b=word, c='a, ]b', d=[1, 2], e=true, f={g=1}]",
        ),
        ("cheap=posted-price[price=1]", {"name": "posted-price", "price": 1}, "cheap"),
        ("my own = all-in", {"name": "all-in"}, "my own"),
        (
            "seq-price@runs/lr=0.1/w.pt",
            {"name": "seq-price", "weights": "runs/lr=0.1/w.pt"},
            "seq-price@w",
        ),
        (
            "a=all-in[value=my.py:worth]",
            {"name": "all-in", "value": "my.py:worth"},
            "a",
        ),
        ("all-in[ ]", {"name": "all-in"}, "all-in"),
    ],
)  # fmt: skip
def test_a_name_gives_the_scenarios_table_and_a_short_label(text, table, label):
    name = AuctionName.parse(text)
    assert name.table == table and name.label == label


def test_a_named_auction_has_its_weights_and_its_options():
    assert named("seq-price@general").learned.facts["preset"] == "general"
    cheap, dear = (named(f"x=posted-price[price={price}]") for price in (1, 3.5))
    assert (cheap.price, dear.price) == (1.0, 3.5)
    assert named("all-in-critical[value=precision]").value == "precision"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("posted-price[prize=2]", "no option 'prize'; did you mean 'price'"),
        ("posted-price[price=-2]", "price: .*greater than 0"),
        ("posted-price[price=much]", "price: .*number"),
        ("posted-price[2]", r"written as \[name=value, name=value\], got '2'"),
        ("posted-price[price=2,]", "written as"),
        ("posted-price[price=2,price=3]", "'price' is given twice"),
        ("seq-price@general[weights=all]", "'weights' is given twice"),
        ("posted-price[price='2]", "unknown auction"),
        ("posted-price[price=a b]", "neither a number, a word nor a text in quotes"),
        ("posted-price[name=all-in]", "the name stands before the brackets"),
        ("cheap=posted-prise", "did you mean 'posted-price'"),
    ],
)
def test_what_cannot_be_read_is_explained(text, message):
    with pytest.raises(InputError, match=message):
        named(text)


def test_names_with_one_label_are_shown_as_they_were_typed():
    texts = ["all-in", "seq-price@a/w.pt", "seq-price@b/w.pt", "x=clock", "x=all-in", "y=clock"]
    assert auction_labels(texts) == {
        "all-in": "all-in",
        "seq-price@a/w.pt": "seq-price@a/w.pt",
        "seq-price@b/w.pt": "seq-price@b/w.pt",
        "x=clock": "x=clock",
        "x=all-in": "x=all-in",
        "y=clock": "y",
    }


@given(st.text("ab=@[]{}'\",.:/\\py 1", max_size=30))
def test_any_text_has_a_label_and_a_table_or_an_explanation(text):
    name = AuctionName.parse(text)
    assert isinstance(name.label, str)
    assert AuctionName.parse("label=" + "x" + text).given_label in ("label", "")
    with suppress(InputError):
        assert "name" in name.table


def test_a_hostile_text_is_read_at_once():
    AuctionName.parse("x" + "[" * 200_000 + "]")


@pytest.mark.parametrize(
    "text",
    ["posted-price[price=2.0\nother=1]", 'posted-price[price="a\nb"]'],
    ids=["a second option", "a text"],  # mutmut names tests by their ids
)
def test_an_option_is_one_line(text):
    with pytest.raises(InputError, match="price"):
        _ = AuctionName.parse(text).table
