"""Auc: reported bids and a budget in, privacy losses and payments out. One file a mechanism."""

from flmarket_sim.auctions.contract import Auction, Outcome
from flmarket_sim.auctions.first_best import FirstBest, first_best
from flmarket_sim.registry import auctions as _registry

names = _registry.names
create = _registry.create
register = _registry.register

__all__ = ["Auction", "FirstBest", "Outcome", "create", "first_best", "names", "register"]
