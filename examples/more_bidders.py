"""A study: what does the buyer gain when more owners bid?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import flmarket_sim as fm
from flmarket_sim.statistics import estimate
from flmarket_sim.studies.study import Finding, Plot, spread


class MoreBidders:
    """Mean error bound by the number of bidders, for several auctions that meet the same markets.

    The budget of a market is `factor` times the value of everything that its bidders can sell.
    """

    name = "more-bidders"

    def __init__(
        self,
        auctions: Sequence[str],
        bidders: Sequence[int] = (5, 10, 20, 40),
        factor: float = 0.5,
        profiles: int = 200,
    ) -> None:
        self.auctions = {name: fm.auctions.create(name) for name in auctions}
        self.bidders, self.factor, self.profiles = list(bidders), factor, profiles

    def run(self, scenario, progress):
        rows = []
        for done, bidders in enumerate(self.bidders, 1):
            rows += self.measure(scenario, bidders)
            progress(done, len(self.bidders))
        return self.conclusion(rows)

    def measure(self, scenario, bidders):
        """One row for each auction, in markets with this number of bidders."""
        market = scenario.market.model_copy(update={"bidders": bidders})
        crowd = scenario.model_copy(update={"market": market})
        truth = fm.draw_profiles(crowd, self.profiles, seed=scenario.seed)
        rule, rows = fm.aggregation.create("opt-aggr"), []
        for name, auction in self.auctions.items():
            budget = self.factor * truth.total_value()
            outcome = auction.decide(truth.bids(), budget, np.random.default_rng(scenario.seed))
            weights = rule.weights(outcome.privacy_loss, truth.data_size)
            error = fm.aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)
            rows.append({"auction": name, "bidders": bidders} | spread("error", estimate(error)))
        return rows

    def conclusion(self, rows):
        plot = Plot("bidders", "error", "auction", "bidders", "mean error bound", log=True)
        sentences = []
        for name in self.auctions:
            errors = [row["error"] for row in rows if row["auction"] == name]
            few, many = self.bidders[0], self.bidders[-1]
            sentences.append(
                f"{name}: {errors[0]:.2f} with {few} bidders, {errors[-1]:.2f} with {many}"
            )
        return Finding(rows, plot, sentences)
