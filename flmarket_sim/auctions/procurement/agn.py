"""AGN, the mechanism of Anari, Goel and Nikzad for large markets: fractions at one rate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.procurement.asked_in_scale import asked_in_scale
from flmarket_sim.auctions.ranking_value import RanksByValue
from flmarket_sim.owners.bids import BidBatch

HALVINGS = 75  # of the logarithm of a range that spans at most 2^2100
MOST = math.e - 1  # times the rate: the largest ratio that sells


class Agn(RanksByValue):
    """At the rate r, an owner of ratio x <= (e - 1) r sells the fraction ln(e - x / r) of her
    privacy budget, e being 2.718..., and is paid v (r e ln(e - x / r) - r (e - 1) + x). The rate is
    the largest at which all payments fit the budget.

    The publication has divisible items and costs that are linear in the fraction, and promises
    1 - 1 / e of the optimum in large markets. What holds here:

    - A sale is individually rational if the fraction s of the privacy budget costs the owner at
      most s times what she asks for all of it: `linear` and `quadratic` owners, and every convex
      valuation that is 0 at 0. Single-minded and concave owners can sell at a loss.
    - At a fixed rate no false price gains for an owner of linear cost: the payment is x times the
      fraction, plus the integral of the fraction over higher ratios. But the rate rises when she
      asks more, by about her share of the market. So she can gain in every finite market, and also
      by offering a smaller privacy budget. Truth is the best report only in the limit of many small
      owners.

    So nothing but the budget holds for a whole class of owners. `value` says what v counts
    (ranking_value.py).
    """

    name = "agn"
    formula = (
        "sell ln(e - x_i / r) of eb_i; pay v_i (r e ln(e - x_i / r) - r (e - 1) + x_i); largest r"
    )
    reference = "Anari, Goel and Nikzad, Mechanism Design for Crowdsourcing (FOCS 2014)"
    guarantees = {"truthful": "none", "individually_rational": "none", "budget_feasible": "any"}

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        market = asked_in_scale(bids, self.amounts(bids), budget)
        fraction, payment = fractional_sales(market.value, market.amount, market.budget)
        return Outcome(fraction * bids.privacy_budget, market.in_money(payment))


def fractional_sales(value: Floats, amount: Floats, budget: Floats) -> tuple[Floats, Floats]:
    """(K, n) fractions sold and payments, for owners who ask `value` for all of `amount` (K, n)."""
    with np.errstate(over="ignore"):
        ratio = value / amount
    fraction, unit_pay = _at_rate(ratio, largest_rate(ratio, amount, budget))
    return fraction, unit_pay * amount


def largest_rate(ratio: Floats, amount: Floats, budget: Floats) -> Floats:
    """(K,) the largest rate at which the payments fit the budget; 0 without money or owners.

    The payment of an owner rises with the rate. It is at most v r. At r >= 2 x it is more than
    0.44 v r. So the rate lies between B / (sum of v) and the least of max(2 x, B / 0.44 v).
    """
    real = np.isfinite(ratio)
    total = np.where(real, amount, 0.0).sum(axis=1)
    possible = (total > 0) & (budget > 0)
    money = np.where(possible, budget, 1.0)
    with np.errstate(over="ignore"):
        enough = np.maximum(2 * ratio, money[:, None] / (0.44 * amount))
    high = np.where(possible, np.where(real, enough, np.inf).min(axis=1), 1.0)
    high = np.minimum(high, np.finfo(float).max)
    low = np.where(possible, money / np.where(possible, total, 1.0), 1.0)
    low = np.minimum(low, high) * (1 - 1e-12)
    for _ in range(HALVINGS):
        middle = np.sqrt(low) * np.sqrt(high)
        with np.errstate(over="ignore"):
            spent = (_at_rate(ratio, middle)[1] * amount).sum(axis=1)
        fits = spent <= money
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(possible, low, 0.0)


def _at_rate(ratio: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """(K, n) the fractions sold at rates (K,), and payments for a unit of value.

    With d = (e - 1) - x / r the fraction is ln(1 + d) and the payment is r (e ln(1 + d) - d), which
    has no cancellation where the fraction is small.
    """
    positive = rate[:, None] > 0
    with np.errstate(over="ignore"):
        depth = MOST - ratio / np.where(positive, rate[:, None], 1.0)
    depth = np.where(positive, np.maximum(depth, 0.0), 0.0)
    fraction: NDArray[np.float64] = np.minimum(np.log1p(depth), 1.0)
    with np.errstate(over="ignore"):
        return fraction, rate[:, None] * (math.e * fraction - depth)
