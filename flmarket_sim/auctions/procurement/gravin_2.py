"""Gravin-2: pruning, then random prices for the two groups that cost the budget together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.market_scale import NEGLIGIBLE
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
    formula = "first p or p (1 - U), second max(0, q - U p) or min(p, q + U p), by a fair coin"
    reference = "Gravin, Jin, Lu and Zhang, Optimal Budget-Feasible Mechanisms (2020)"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        heads, uniform = rng.random((2, bids.shape[0]))
        market = asked_in_scale(bids, self.amounts(bids), budget)
        pruned = Pruned.of(market.value, market.amount, market.budget)
        first, second = random_prices(pruned, heads < 0.5, uniform)
        return pruned.sales(bids, market, first, second)

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]:
        """(K, n, 2) the chances of selling nothing and all, and the mean payments of such sales.

        With s = 1 in the first group and s = q / p in the second, and y = x / p, the chance of a
        sale is (1 + s - y) / 2, and the mean payment, with 0 for no sale, is v p / 2 times
        s + (1 - y^2) / 2.
        """
        market = asked_in_scale(bids, self.amounts(bids), check_budget(bids, budget))
        pruned = Pruned.of(market.value, market.amount, market.budget)
        kept, price = pruned.major | pruned.minor, np.maximum(pruned.price, NEGLIGIBLE)[:, None]
        part = np.where(pruned.major, 1.0, pruned.rest[:, None] / price)
        asked = np.where(kept, pruned.ratio, 0.0) / price
        chance = np.where(kept, (1 + part - asked) / 2, 0.0)
        mean = market.amount * price / 2 * (part + (1 - asked**2) / 2)
        paid = np.divide(mean, chance, out=np.zeros_like(mean), where=chance > 0)
        chances = np.stack([1 - chance, chance], axis=2)
        return chances, np.stack([np.zeros_like(paid), market.in_money(paid)], axis=2)


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
