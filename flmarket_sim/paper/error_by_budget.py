"""What each auction and rule makes of the buyer's money: the paper's figures 1 and 2, and RQ2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.rule import weights_in
from flmarket_sim.auctions.auction import auction_in, records_sold, sales_and_rest
from flmarket_sim.auctions.first_best import first_best
from flmarket_sim.owners.population import draw_profiles
from flmarket_sim.paper.paper_market import PaperMarket, in_panels, rule_name
from flmarket_sim.paper.paper_study import PaperStudy
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import UNKNOWN, Estimate, estimate, share_estimate
from flmarket_sim.studies.study import Count, Factors, Finding, Plot, Row, Work, spread

Floats = NDArray[np.float64]
FIRST_BEST = "first-best"
BOUNDED = 50  # markets whose first-best gets a close lower bound
CEILING = 100.0  # an invalid gradient counts as this in `capped_error`: its error bound is infinite


@dataclass(frozen=True, kw_only=True)
class ErrorByBudget(PaperStudy):
    """Error bound, invalid gradients, spending and owners' surplus by budget factor.

    Every auction meets the same markets.

    error_bound             mean over markets with a valid gradient, as in the paper; an auction
                            that buys nothing in hard markets therefore looks better
    error_over_first_best   error_bound over the mean first-best error of the same markets;
                            first-best is the best purchase found for a buyer who pays true
                            valuations
    gap, largest_gap        of first-best rows: by which share of its error the optimum can be lower
                            at most, proved for the first BOUNDED markets (mean and largest)
    capped_error            mean over all markets; an invalid gradient counts as 100
    invalid_rate            share of markets in which nothing was bought
    spent_share             payments / budget; the sum of the next two
    surplus_share           what owners keep above the worth of their privacy to them / budget
    cost_share              the worth of the privacy that they sell / budget
    saving                  mean of 1 - error under this rule / error under the last rule, over
                            markets in which both are valid

    `show` names the measure of the figure. Welfare has no single number as long as error has no
    price: its parts are the buyer's error and money, and the owners' surplus.
    """

    name = "error-by-budget"
    factors: Factors = (0.1, 0.5, 1.0, 1.5, 2.0)
    profiles: Count = 2000
    show: Literal["error_bound", "invalid_rate", "saving", "surplus_share"] = "error_bound"

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            self.work(market) | {"factor": factor, "profiles": self.profiles}
            for market in self.markets
            for factor in self.factors
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """All auctions and rules in one market at one budget factor."""
        market, factor = PaperMarket.model_validate(work["market"]), work["factor"]
        counted = scenario_error(scenario)
        truth = draw_profiles(market.of(scenario), work["profiles"], seed=scenario.seed + 1)
        population, budget = truth.population, factor * truth.total_value()
        bids = truth.bids(scenario.market.levels)
        floor = first_best(truth, budget, error=counted).error_bound
        place = {"budget_factor": factor, "profiles": len(floor)}
        rows: list[Row] = []
        errors: dict[tuple[str, str], Floats] = {}
        for name, rule in market.policies(work["auctions"], work["rules"], work["authors"]):
            auction = auction_in(market.auction(name, rule, work["authors"]), counted)
            outcome = auction.decide(bids, budget, np.random.default_rng(scenario.seed))
            loss, size = sales_and_rest(outcome, truth.data_size)
            weights = weights_in(aggregation.create(rule), loss, size, counted)
            error = errors[name, rule] = error_bound_in(counted, weights, loss, size).total
            paid = outcome.payment.sum(axis=1) / budget
            value = truth.value(outcome.privacy_loss, records_sold(outcome, bids))
            cost = value.sum(axis=1) / budget
            row: Row = {"market": market.name, "auction": name, "rule": rule} | place
            row |= _error_columns(error, floor, population)
            row |= {"spent_share": float(paid.mean()), "cost_share": float(cost.mean())}
            rows.append(row | spread("surplus_share", estimate(paid - cost, population)))
        for row in rows:
            last = errors.get((row["auction"], work["rules"][-1]))
            error = errors[row["auction"], row["rule"]]
            row |= spread("saving", _saving(error, last, population))
        best = {"market": market.name, "auction": FIRST_BEST} | place
        best |= spread("error_bound", estimate(floor, population))
        best |= {"capped_error": float(floor.mean()), "invalid_rate": 0.0}
        few = slice(0, BOUNDED)
        gap = first_best(truth.take(few), budget[few], bound=True, error=counted).gap
        best |= {"gap": float(gap.mean()), "largest_gap": float(gap.max())}
        return rows + [best | {"rule": rule} for rule in work["rules"]]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        rows = [row for task in results for row in task]
        columns = dict.fromkeys(key for row in rows for key in row)
        rows = [{key: row.get(key) for key in columns} for row in rows]
        without_itself = self.rules[:-1] if self.show == "saving" else self.rules
        measured = [
            row for row in rows if row[self.show] is not None and row["rule"] in without_itself
        ]
        labels = {
            "error_bound": "mean error bound",
            "invalid_rate": "share of invalid gradients",
            "saving": f"error saved against {rule_name(self.rules[-1])}",
            "surplus_share": "owners' surplus / budget",
        }
        of_errors = self.show == "error_bound"
        plot = Plot(
            "budget_factor", self.show, "auction", "budget / value of everything for sale",
            labels[self.show], log=of_errors, panel="panel", top=CEILING if of_errors else None,
        )  # fmt: skip
        sentences = [self._sentence(rows, market.name) for market in self.markets]
        keys = ("market", "auction", "budget_factor", self.show, "rule")
        others = ("error_bound", "invalid_rate", "surplus_share", "spent_share")
        of_rule = [row for row in rows if row["rule"] == self.rules[0]]
        shown = tuple(dict.fromkeys((*keys, *others)))
        return Finding(rows, plot, sentences, in_panels(measured), shown=shown, shown_rows=of_rule)

    def _sentence(self, rows: list[Row], market: str) -> str:
        values: dict[str, list[float]] = {}
        for row in rows:
            in_sentence = (row["market"], row["rule"]) == (market, self.rules[0])
            if in_sentence and row["auction"] != FIRST_BEST and row[self.show] is not None:
                values.setdefault(row["auction"], []).append(row[self.show])
        means = {name: float(np.mean(of_auction)) for name, of_auction in values.items()}
        order = ", ".join(
            f"{name} {means[name]:.3g}" for name in sorted(means, key=means.__getitem__)
        )
        measure = self.show.replace("_", " ")
        return f"{market}, {self.rules[0]}, {measure} (mean over the budget factors): {order}"


def _error_columns(error: Floats, floor: Floats, population: NDArray[np.int64]) -> Row:
    """The columns of error bounds (K,) beside the first-best errors (K,) of the same markets."""
    valid = np.isfinite(error)
    row: Row = spread("error_bound", estimate(error, population))
    row |= spread("error_over_first_best", estimate(error, population, floor))
    row["capped_error"] = float(np.where(valid, np.minimum(error, CEILING), CEILING).mean())
    return row | spread("invalid_rate", share_estimate(~valid, population))


def _saving(
    error: Floats, under_last_rule: Floats | None, population: NDArray[np.int64]
) -> Estimate:
    if under_last_rule is None:
        return UNKNOWN
    valid = np.isfinite(error) & np.isfinite(under_last_rule)
    ratio = np.divide(error, under_last_rule, out=np.full_like(error, np.nan), where=valid)
    return estimate(1 - ratio, population)
