"""Which bounds belong to the network of a learned auction."""

from __future__ import annotations

from flmarket_sim.auctions.auction import Auction
from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.regretnet import DMRegretNet, MRegretNet, RegretNet
from flmarket_sim.errors import InputError
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.menu_network_bounds import MenuNetworkBounds
from flmarket_sim.strategy.certified.paper_network_bounds import PaperNetworkBounds

NetworkBounds = MenuNetworkBounds | PaperNetworkBounds


def bounds_of_network(auction: Auction, owner: LyingOwner) -> NetworkBounds | None:
    """Bounds over boxes of reports; None if the auction is not one of the paper's learned ones, or
    if it has the paper's network and one owner only."""
    # A subclass may decide otherwise.
    exactly = type(auction) in (RegretNet, MRegretNet, DMRegretNet)
    if not exactly:
        return None
    assert isinstance(auction, RegretNet | MRegretNet | DMRegretNet)
    network = auction.learned.network
    if isinstance(network, MenuNetwork):
        if not owner.size_certified:
            return None
        return MenuNetworkBounds(
            network,
            owner,
            kappa=auction.trained_kappa,
            by_size=auction.by_size,
            deterministic=auction.learned.deterministic,
        )
    if isinstance(network, PaperNetwork) and owner.bids.shape[1] > 1:
        if network.n != owner.bids.shape[1]:
            raise InputError(
                f"auction {auction.name!r}: these weights were trained for {network.n} bidders, "
                f"not for {owner.bids.shape[1]}"
            )
        return PaperNetworkBounds(auction.learned, owner)
    return None
