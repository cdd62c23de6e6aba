"""Work each auction makes of the buyer's money under each aggregation rule: the paper's figures 1 and 2, and RQ2."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from flmarket_sim import aggregation
from flmarket_sim.auctions.auction import records_sold
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.owners.population import draw_profiles
from flmarket_sim.paper.paper_market import (
    PaperMarket,
    PaperMarkets,
    Rules,
    check_policies,
    in_panels,
    rule_name,
)
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import Estimate, estimate, from_seeds
from flmarket_sim.studies.study import Count, Factors, Finding, Names, Plot, Row, Work, spread

FIRST_BEST = "first-best"
CEILING = 100.0  # what an invalid gradient counts as in `capped_error`: its error bound is infinite


class ErrorByBudget:
    """Error bound, invalid gradients, spending and owners' surplus by budget factor; every auction meets the same markets.

    error_bound             mean over markets whose gradient is valid, as in the paper: whoever buys nothing in hard markets looks better
    error_over_first_best   that, over the mean first-best error of the same markets
    capped_error            mean over all markets, an invalid gradient counted as 100
    invalid_rate            share of markets in which nothing was bought
    spent_share, surplus_share, cost_share    of the budget: what is paid, what owners keep above what their privacy is worth to
                            them, and what it is worth; the first is the sum of the other two
    saving                  mean of 1 - error under this rule / error under the last rule, where both are valid

    `show` says which of them the figure shows. Welfare has no single number as long as error has no price: its parts are the
    buyer's error and money, and the owners' surplus.
    """

    name = "error-by-budget"

    def __init__(
        self,
        markets: PaperMarkets,
        auctions: Names,
        rules: Rules = ("opt-aggr", "convl-aggr"),
        factors: Factors = (0.1, 0.5, 1.0, 1.5, 2.0),
        profiles: Count = 2000,
        show: Literal["error_bound", "invalid_rate", "saving", "surplus_share"] = "error_bound",
        authors: str | None = None,
        quick: dict[str, Any] | None = None,
    ) -> None:
        self.markets, self.auctions, self.rules = list(markets), list(auctions), list(rules)
        self.factors, self.profiles, self.show, self.authors = (
            list(factors),
            profiles,
            show,
            authors,
        )
        check_policies(self.markets, self.auctions, self.rules, authors)

    def tasks(self, scenario: Scenario) -> list[Work]:
        asked = {
            "auctions": self.auctions,
            "rules": self.rules,
            "authors": self.authors,
            "profiles": self.profiles,
        }
        return [
            {
                "market": market.model_dump(),
                "factor": factor,
                "weights": market.identities(self.auctions, self.rules, self.authors),
            }
            | asked
            for market in self.markets
            for factor in self.factors
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """All auctions and rules in one market at one budget factor."""
        market, factor = PaperMarket.model_validate(work["market"]), work["factor"]
        clip = scenario.privacy.clip
        truth = draw_profiles(market.of(scenario), work["profiles"], seed=scenario.seed + 1)
        budget = factor * truth.total_value()
        bids = truth.bids(scenario.market.levels)
        floor = first_best(truth, budget, clip).error_bound
        rows: list[Row] = []
        errors: dict[tuple[str, str], NDArray[np.float64]] = {}
        for name in work["auctions"]:
            for rule in work["rules"]:
                if not market.has(name, rule, work["authors"]):
                    continue
                auction = market.auction(name, rule, work["authors"])
                outcome = auction.decide(bids, budget, np.random.default_rng(scenario.seed))
                weights = aggregation.create(rule).weights(
                    outcome.privacy_loss, truth.data_size, clip
                )
                error = errors[name, rule] = aggregation.error_bound(
                    weights, outcome.privacy_loss, truth.data_size, clip
                )
                valid = np.isfinite(error)
                paid = outcome.payment.sum(axis=1) / budget
                cost = (
                    truth.value(outcome.privacy_loss, records_sold(outcome, bids)).sum(axis=1)
                    / budget
                )
                row: Row = {
                    "market": market.name,
                    "auction": name,
                    "rule": rule,
                    "budget_factor": factor,
                }
                row |= {"profiles": len(error)} | spread("error_bound", from_seeds(error[valid]))
                row |= spread("error_over_first_best", estimate(error[valid], weights=floor[valid]))
                row |= {
                    "capped_error": float(
                        np.where(valid, np.minimum(error, CEILING), CEILING).mean()
                    )
                }
                row |= spread("invalid_rate", _share(int((~valid).sum()), len(valid)))
                row |= {"spent_share": float(paid.mean()), "cost_share": float(cost.mean())}
                row |= spread("surplus_share", from_seeds(paid - cost))
                rows.append(row)
        for row in rows:
            mine, other = (
                errors[row["auction"], row["rule"]],
                errors.get((row["auction"], work["rules"][-1])),
            )
            both = np.isfinite(mine) & np.isfinite(mine if other is None else other)
            row |= spread(
                "saving",
                from_seeds(np.full(0, np.nan) if other is None else 1 - mine[both] / other[both]),
            )
        best = {
            "market": market.name,
            "auction": FIRST_BEST,
            "budget_factor": factor,
            "profiles": len(floor),
        }
        best |= spread("error_bound", from_seeds(floor)) | {
            "capped_error": float(floor.mean()),
            "invalid_rate": 0.0,
        }
        return rows + [best | {"rule": rule} for rule in work["rules"]]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for piece in results for row in piece]
        every = dict.fromkeys(key for row in rows for key in row)
        rows = [{key: row.get(key) for key in every} for row in rows]
        shown = [
            row
            for row in rows
            if row[self.show] is not None
            and (self.show != "saving" or row["rule"] != self.rules[-1])
        ]
        drawn = in_panels(shown)
        told = {
            "error_bound": "mean error bound",
            "invalid_rate": "share of invalid gradients",
            "saving": f"error saved against {rule_name(self.rules[-1])}",
            "surplus_share": "owners' surplus / budget",
        }
        plot = Plot(
            "budget_factor", self.show, "auction", "budget / value of everything for sale", told[self.show],
            log=self.show == "error_bound", panel="panel", top=CEILING if self.show == "error_bound" else None,
        )  # fmt: skip
        return Finding(
            rows, plot, [self._sentence(rows, market.name) for market in self.markets], drawn
        )

    def _sentence(self, rows: list[dict[str, Any]], market: str) -> str:
        first = [
            row
            for row in rows
            if row["market"] == market
            and row["rule"] == self.rules[0]
            and row["auction"] != FIRST_BEST
        ]
        means = {}
        for name in dict.fromkeys(row["auction"] for row in first):
            mine = [
                row[self.show]
                for row in first
                if row["auction"] == name and row[self.show] is not None
            ]
            means[name] = float(np.mean(mine))
        order = sorted(means, key=lambda name: means[name])
        told = ", ".join(f"{name} {means[name]:.3g}" for name in order)
        return f"{market}, {self.rules[0]}, {self.show.replace('_', ' ')} (mean over the budget factors): {told}"


def _share(count: int, of: int) -> Estimate:
    """A share with its Clopper-Pearson 95 % interval."""
    low = float(betaincinv(count, of - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 0.975)) if count < of else 1.0
    return Estimate(count / of, low, high)
