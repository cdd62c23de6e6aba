"""How accurate the buyer's model becomes, round by round, under each auction and aggregation rule: the paper's figure 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.experiments.market_runs import load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.paper.paper_market import (
    PUBLISHED,
    PaperMarket,
    PaperMarkets,
    Rules,
    check_policies,
    in_panels,
)
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import Estimate, from_seeds
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Row, Work, spread


class Accuracy:
    """Test accuracy by round, means over seeds with Student's interval; auctions and rules are paired on each seed.

    true_error is the mean squared distance of the delivered gradient from the one without privacy, over the valid rounds;
    `over_baseline` is the accuracy minus that of the first auction under the same rule (for published weights: minus that of the first
    auction with published weights), `over_last_rule` minus that of the same auction under the last rule, seed by seed.
    """

    name = "accuracy"

    def __init__(
        self,
        markets: PaperMarkets,
        auctions: Names,
        rules: Rules = ("opt-aggr", "convl-aggr"),
        seeds: Count = 30,
        authors: str | None = None,
        quick: dict[str, Any] | None = None,
    ) -> None:
        self.markets, self.auctions, self.rules, self.seeds = (
            list(markets),
            list(auctions),
            list(rules),
            seeds,
        )
        self.authors = authors
        check_policies(self.markets, self.auctions, self.rules, authors)

    def tasks(self, scenario: Scenario) -> list[Work]:
        asked = {"auctions": self.auctions, "rules": self.rules, "authors": self.authors}
        return [
            {
                "market": market.model_dump(),
                "seed": seed,
                "weights": market.identities(self.auctions, self.rules, self.authors),
            }
            | asked
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for market in self.markets
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """All auctions and rules on one seed of one market."""
        market = PaperMarket.model_validate(work["market"])
        rows: list[Row] = []
        data = load_data(market.of(scenario, seed=work["seed"]))
        for name in work["auctions"]:
            for rule in work["rules"]:
                if not market.has(name, rule, work["authors"]):
                    continue
                auction = market.auction_options(name, rule, work["authors"])
                one = market.of(
                    scenario, seed=work["seed"], auction=auction, aggregation={"name": rule}
                )
                rounds = rounds_only(one, data)
                valid = [row for row in rounds if row["valid"]]
                about = {"market": market.name, "auction": name, "rule": rule, "seed": work["seed"]}
                means = {
                    key: float(np.mean([row[key] for row in valid])) if valid else None
                    for key in ("error_bound", "true_error")
                }
                means["invalid"] = 1 - len(valid) / len(rounds)
                rows += [
                    about | {"round": row["round"] + 1, "accuracy": row["accuracy"]} | means
                    for row in rounds
                    if row["accuracy"] is not None
                ]
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        found = [row for rows in results for row in rows]
        cells: dict[tuple[Any, ...], dict[int, Row]] = {}
        for row in found:
            cells.setdefault((row["market"], row["auction"], row["rule"], row["round"]), {})[
                row["seed"]
            ] = row
        rows: list[dict[str, Any]] = []
        for (market, auction, rule, number), mine in cells.items():
            baseline = (
                PUBLISHED + self.auctions[0] if auction.startswith(PUBLISHED) else self.auctions[0]
            )
            others = {
                "over_baseline": (baseline, rule),
                "over_last_rule": (auction, self.rules[-1]),
            }
            line: dict[str, Any] = {
                "market": market,
                "auction": auction,
                "rule": rule,
                "round": number,
                "seeds": len(mine),
            }
            line |= spread(
                "accuracy", from_seeds(np.array([row["accuracy"] for row in mine.values()]))
            )
            for key, (against, under) in others.items():
                base = cells.get((market, against, under, number), {})
                both = [seed for seed in mine if seed in base]
                line |= spread(
                    key,
                    from_seeds(
                        np.array([mine[seed]["accuracy"] - base[seed]["accuracy"] for seed in both])
                    ),
                )
            for key in ("error_bound", "true_error", "invalid"):
                line |= spread(
                    key, from_seeds(np.array([row[key] for row in mine.values()], float))
                )
            rows.append(line)
        drawn = in_panels(rows)
        plot = Plot("round", "accuracy", "auction", "round", "test accuracy", panel="panel")
        return Finding(rows, plot, [_sentence(rows, market.name) for market in self.markets], drawn)


def _sentence(rows: list[dict[str, Any]], market: str) -> str:
    mine = [row for row in rows if row["market"] == market]
    last = [row for row in mine if row["round"] == max(row["round"] for row in mine)]
    order = sorted(last, key=lambda row: -float(row["accuracy"]))
    told = [
        f"{row['auction']} with {row['rule']} {Estimate(row['accuracy'], row['accuracy_low'], row['accuracy_high'])}"
        for row in order
    ]
    return f"{market}, after the last round: {', '.join(told)}"
