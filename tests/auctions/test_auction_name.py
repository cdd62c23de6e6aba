"""NAME@WEIGHTS is read in one place."""

import pytest

from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction_name import AuctionName


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
    ],
)
def test_a_name_gives_the_scenarios_table_and_a_short_label(text, table, label):
    name = AuctionName.parse(text)
    assert name.table == table and name.label == label


def test_a_named_auction_has_its_weights():
    assert named("seq-price@general").learned.facts["preset"] == "general"
