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
        for name in auctions:
            fm.auctions.named(name)  # an unknown name is refused before anything runs
        self.auctions, self.bidders = list(auctions), list(bidders)
        self.settings = {"factor": factor, "profiles": profiles}

    def tasks(self, scenario):
        """One task for each auction and number of bidders, as plain data."""
        return [
            {"auction": name, "bidders": bidders} | self.settings
            for name in self.auctions
            for bidders in self.bidders
        ]

    @staticmethod
    def measure(scenario, work):
        """The rows of one task. They depend on the scenario and on `work` alone."""
        market = scenario.market.model_copy(update={"bidders": work["bidders"]})
        crowd = scenario.model_copy(update={"market": market})
        truth = fm.draw_profiles(crowd, work["profiles"], seed=scenario.seed)
        auction, rule = fm.auctions.named(work["auction"]), fm.aggregation.create("opt-aggr")
        budget = work["factor"] * truth.total_value()
        outcome = auction.decide(truth.bids(), budget, np.random.default_rng(scenario.seed))
        weights = rule.weights(outcome.privacy_loss, truth.data_size)
        error = fm.aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)
        row = {"auction": work["auction"], "bidders": work["bidders"]}
        return [row | spread("error", estimate(error))]

    def conclude(self, scenario, results):
        """The finding: rows, a plot of them, and a sentence for each auction."""
        rows = [row for task in results for row in task]
        plot = Plot("bidders", "error", "auction", "bidders", "mean error bound", log=True)
        sentences = []
        for name in self.auctions:
            errors = [row["error"] for row in rows if row["auction"] == name]
            few, many = self.bidders[0], self.bidders[-1]
            sentences.append(
                f"{name}: {errors[0]:.2f} with {few} bidders, {errors[-1]:.2f} with {many}"
            )
        return Finding(rows, plot, sentences)
