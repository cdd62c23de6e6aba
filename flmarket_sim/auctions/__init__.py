"""Auc: reported bids and a budget in, privacy losses and payments out. One file a mechanism."""

from flmarket_sim.auctions.auction import Auction, Outcome, auction_in
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.auctions.first_best import FirstBest, first_best
from flmarket_sim.plugins.registry import auctions as _registry

names = _registry.names
create = _registry.create
register = _registry.register


def named(text: str) -> Auction:
    """The auction behind NAME, NAME@WEIGHTS (a learned one with other weights) or module:Class."""
    auction: Auction = create(**AuctionName.parse(text).table)
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
