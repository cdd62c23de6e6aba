"""Gravin-2: pruning, then random prices for the two groups that cost the budget together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.procurement.asked_in_scale import asked_in_scale
from flmarket_sim.auctions.procurement.pruning import Pruned
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch


class Gravin2(RanksByValue):
    """The randomised mechanism with half of the fractional optimum (Gravin, Jin, Lu and Zhang
    2020).

    Pruning (pruning.py) leaves owners S and a unit price p. The more valuable one of the groups
    {i*} and S without i* has the value M, the other one m <= M, and q = (B - M p) / m is the price
    at which the other one can be paid what M p leaves. A fair coin and a uniform number U in [0, 1]
    make the prices of a unit:

                      heads              tails
    first group       p                  p (1 - U)
    second group      max(0, q - U p)    min(p, q + U p)

    An owner who asks for no more than her offer sells all and is paid the offer. The offers cost at
    most M p + m q = B with heads, and at most B - U p (M - m) with tails.

    It buys half of the fractional optimum on average. An owner of the first group sells with the
    chance 1 - x / 2p, and one of the second with (1 + q / p - x / p) / 2. Summed over S with values
    as weights, this is (v(S) + (B - c(S)) / p) / 2, half of the bound in pruning.py.

    For public values it is universally truthful: coin and U do not depend on reports, and for each
    of them the offers are posted prices of at most v_i p (pruning.py). In this market an owner can
    understate her value, by a smaller privacy budget or fewer records, and that sometimes gains. So
    the auction is not declared truthful.

    The abstract of the publication states the ratio. Its text was not at hand: the prices above and
    the proofs are this project's. `value` says what v counts (ranking_value.py).
    """

    name = "gravin-2"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        heads, uniform = rng.random((2, bids.shape[0]))
        market = asked_in_scale(bids, self.amounts(bids), budget)
        pruned = Pruned.of(market.value, market.amount, market.budget)
        first, second = random_prices(pruned, heads < 0.5, uniform)
        return pruned.sales(bids, market, first, second)


def random_prices(
    pruned: Pruned, heads: NDArray[np.bool_], uniform: Floats
) -> tuple[Floats, Floats]:
    """(K,) prices of the two groups for coins and uniform numbers (K,)."""
    price, step = pruned.price, uniform * pruned.price
    first = np.where(heads, price, price - step)
    second = np.where(
        heads, np.maximum(pruned.rest - step, 0.0), np.minimum(pruned.rest + step, price)
    )
    return first, second
