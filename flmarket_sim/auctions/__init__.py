"""Auc: reported bids and a budget in, privacy losses and payments out. One file a mechanism."""

from flmarket_sim.auctions.auction import Auction, Outcome, auction_in
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.auctions.first_best import FirstBest, first_best
from flmarket_sim.plugins.registry import auctions as _registry

names = _registry.names
create = _registry.create
register = _registry.register


def named(text: str) -> Auction:
    """The auction behind a name as users type it, with weights, options and a label.

    `auction_name.py` has the forms: NAME, NAME@WEIGHTS, file.py:Class, NAME[option=2], LABEL=NAME.
    """
    table = AuctionName.parse(text).table
    auction: Auction = create(table.pop("name"), **table)
    return auction


__all__ = [
    "Auction",
    "FirstBest",
    "Outcome",
    "auction_in",
    "create",
    "first_best",
    "named",
    "names",
    "register",
]
