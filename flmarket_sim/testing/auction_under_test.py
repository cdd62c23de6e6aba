"""The mechanism under test, and how sure a verdict on a lottery must be."""

from __future__ import annotations

import copy
from typing import Any

from flmarket_sim.auctions.play import Lots, Player, draws_numbers
from flmarket_sim.errors import plugin_errors
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.statistics import standard_error
from flmarket_sim.testing.trial_markets import Floats

PREVIEW = 32  # draws of a lottery when many markets are searched
DRAWS = 2048  # draws of a lottery when one market is judged
CERTAIN = 6.0  # standard errors: thousands of comparisons are made, and none may fail by chance


class AuctionUnderTest(Player):
    """A player of the auction that is tested. `random` and `sampled` are known after `notice`."""

    def __init__(self, auction: Any, seed: int = 0, random: bool = False) -> None:
        name = str(getattr(auction, "name", type(auction).__name__))
        super().__init__(auction, random, seed, PREVIEW, name)
        self._unused = _copied(auction)

    def fresh(self) -> AuctionUnderTest:
        """The same auction as it was before its first call."""
        return AuctionUnderTest(_copied(self._unused), self.seed, self.random)

    def notice(self, bids: BidBatch, money: Floats) -> None:
        """Notes whether `decide` draws numbers at all."""
        with plugin_errors("auction", self.name):
            self.random |= draws_numbers(self.auction, bids, money)

    def realised(self, bids: BidBatch, money: float) -> Lots:
        """Draws of one market, also where the auction states its chances."""
        return self.repeated(bids, money, DRAWS)

    def all_lots(self, bids: BidBatch, money: float) -> Lots:
        """Everything that can happen in one market."""
        return self.lots_of_market(bids, money, DRAWS)

    def above_noise(self, difference: Floats) -> bool:
        """Whether a paired difference (D,) of lots is positive beyond chance."""
        if not self.sampled:
            return True
        return bool(difference.mean() > CERTAIN * standard_error(difference))


def _copied(auction: Any) -> Any:
    try:
        return copy.deepcopy(auction)
    except Exception:  # foreign objects need not be copyable
        return auction
