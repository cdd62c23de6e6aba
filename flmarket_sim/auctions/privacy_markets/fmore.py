"""FMore: a score auction, in which quality less the ask decides."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flmarket_sim.auctions.auction import Floats, Outcome, check_budget
from flmarket_sim.auctions.ranking_value import RECORDS_LOSS, RanksByValue
from flmarket_sim.owners.bids import BidBatch


class FMore(RanksByValue):
    """The owners with the highest scores s(q_i) - ask sell whole budgets while the money lasts.

    Zeng, Zhang, Wang and Chu, "FMore: An Incentive Scheme of Multi-dimensional Auction for
    Federated Learning in MEC" (ICDCS 2020), after the score auctions of Che (1993). s(q) is `worth`
    times what the whole sale counts as (`value`, see ranking_value.py), in money. At most `winners`
    owners win, and nobody whose score is negative. Scores are gone through from the highest, and
    the first sale that the money does not cover is the end.

        payment = "first"    a winner is paid what she asks
        payment = "second"   her payment makes her score the highest one that is not among the first
                             `winners`, or 0 if there is none: s(q_i) - score_(K+1)

    The publication calls the scheme incentive compatible: in its equilibrium, asks are above costs
    by a known margin. Telling the truth is no best answer under either payment. Under "first" a
    higher ask earns more, and under "second" a lower one comes first when money is short.
    """

    name = "fmore"
    formula = "the K highest s(q_i) - ask_i; pay ask_i, or s(q_i) - score_(K+1)"
    reference = "Zeng, Zhang, Wang and Chu, FMore (ICDCS 2020)"
    guarantees = {"truthful": "none", "individually_rational": "any", "budget_feasible": "any"}
    claims = {"truthful": "single-minded", "individually_rational": "any"}

    def __init__(
        self,
        value: str = RECORDS_LOSS,
        worth: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 4.0,
        winners: Annotated[int, Field(ge=1)] = 5,
        payment: Literal["first", "second"] = "first",
    ) -> None:
        super().__init__(value)
        self.worth, self.winners, self.payment = worth, winners, payment

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        markets, n = bids.shape
        ask = bids.full_value
        with np.errstate(over="ignore"):
            worth = np.minimum(self.worth * self.amounts(bids), np.finfo(float).max)
        order = np.argsort(ask - worth, axis=1, kind="stable")
        worth, ask = (np.take_along_axis(column, order, 1) for column in (worth, ask))
        score = worth - ask
        payment = ask
        if self.payment == "second":
            loser = score[:, self.winners] if self.winners < n else np.zeros(markets)
            with np.errstate(over="ignore"):  # more than any number is more than the money
                payment = np.maximum(ask, worth - np.maximum(loser, 0.0)[:, None])
        with np.errstate(over="ignore"):
            fits = np.cumsum(payment, axis=1) <= budget[:, None]
        good = fits & (score >= 0) & (np.arange(n) < self.winners)
        won = np.logical_and.accumulate(good, axis=1)
        sold, paid = np.zeros((markets, n)), np.zeros((markets, n))
        whole = np.take_along_axis(bids.privacy_budget, order, 1)
        np.put_along_axis(sold, order, np.where(won, whole, 0.0), axis=1)
        np.put_along_axis(paid, order, np.where(won, payment, 0.0), axis=1)
        return Outcome(sold, paid)
