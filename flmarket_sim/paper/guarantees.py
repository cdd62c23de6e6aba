"""How far auctions are from truthful and individually rational: the paper's table by its metric, by that mended, by the probe."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import Differentiable
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.paper.paper_market import BY_RULE, PUBLISHED, PaperMarket, PaperMarkets, Rules
from flmarket_sim.paper.published_attack import Attack
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Row, Work, melted, spread
from flmarket_sim.studies.study import markets as draw

PAPER = {  # Table of the paper: (market, auction, rule) to regret and IR violation
    ("IID", "regretnet", "opt-aggr"): (0.9351, 0.1684),
    ("IID", "m-regretnet", "opt-aggr"): (0.7715, 0.1508),
    ("IID", "dm-regretnet", "convl-aggr"): (0.0617, 0.0251),
    ("IID", "dm-regretnet", "opt-aggr"): (0.0556, 0.0265),
    ("non-IID", "regretnet", "opt-aggr"): (0.8164, 0.3864),
    ("non-IID", "m-regretnet", "opt-aggr"): (0.6652, 0.2020),
    ("non-IID", "dm-regretnet", "convl-aggr"): (0.0516, 0.0210),
    ("non-IID", "dm-regretnet", "opt-aggr"): (0.0428, 0.0259),
}
KINDS = {"as published": "as_published", "corrected metric": "corrected", "probe": "probe"}
UNKNOWN = {"": float("nan"), "_low": float("nan"), "_high": float("nan")}


class Guarantees:
    """Regret (mean gain / cost) and IR violation (mean shortfall / cost), each measured in several ways.

    paper_regret, paper_ir    what the paper's table says
    as_published    its metric on these weights: one draw of each report for lotteries, the last of 100 plain gradient steps,
                    over the expected cost of what is sold, however little that is
    luck            lotteries: what that metric calls regret when nobody lies
    corrected       expected utilities, a smooth choice of levels, the best of several iterates
    probe           the best lies that the standard search finds
    ir_as_published, ir_violation    of one draw, and in expectation

    luck and ir_as_published are over that cost too, all others over it or the worth of 1/8 of her privacy budget, the larger. Only
    learned auctions have a network that the paper's attack could follow; the others have the probe alone.
    """

    name = "guarantees"

    def __init__(
        self,
        markets: PaperMarkets,
        auctions: Names,
        rules: Rules = ("opt-aggr", "convl-aggr"),
        profiles: Count = 200,
        probed: Count = 100,
        effort: str = "standard",
        authors: str | None = None,
        quick: dict[str, Any] | None = None,
    ) -> None:
        effort_of(effort)
        self.markets, self.auctions, self.rules = list(markets), list(auctions), list(rules)
        self.settings: dict[str, Any] = {
            "profiles": profiles,
            "probed": min(probed, profiles),
            "effort": effort,
        }
        self.authors = authors
        for work in self._works():
            PaperMarket.model_validate(work["market"]).auction(
                work["auction"], work["rule"], authors
            )

    def tasks(self, scenario: Scenario) -> list[Work]:
        return self._works()

    def _works(self) -> list[Work]:
        """Auctions that are trained for a rule under every rule, the others once: no rule changes what owners are paid."""
        return [
            {
                "market": market.model_dump(),
                "auction": name,
                "rule": rule,
                "authors": self.authors,
                "weights": market.identity(name, rule, self.authors),
            }
            | self.settings
            for name in self.auctions
            for rule in (self.rules if name.removeprefix(PUBLISHED) in BY_RULE else self.rules[:1])
            for market in self.markets
            if market.has(name, rule, self.authors)
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = PaperMarket.model_validate(work["market"])
        auction = market.auction(work["auction"], work["rule"], work["authors"])
        truth, budget = draw(market.of(scenario), work["profiles"], seed=scenario.seed + 1)
        utility, cost = expected_utility(auction, truth, truth.bids(), budget)
        few = slice(0, work["probed"])
        found = {
            "probe": probe(
                auction, truth.take(few), budget[few], seed=scenario.seed, effort=work["effort"]
            ).relative_gain,
            "ir_violation": np.maximum(-utility, 0.0) / measured_against(truth, cost),
        }
        if isinstance(auction, Differentiable):
            attack = Attack(auction, truth, budget)
            found |= {"as_published": attack.as_published(), "corrected": attack.corrected()}
            found["ir_as_published"] = attack.drawn_shortfall()
            if not attack.auction.learned.deterministic:
                found["luck"] = attack.luck()
        row: Row = {"market": market.name, "auction": work["auction"], "rule": work["rule"]}
        for key, values in found.items():
            row |= spread(key, estimate(values.mean(axis=1)))
        return [row | {"gaining": float((found["probe"] > 0.01).mean())}]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        measured = ("as_published", "luck", "corrected", "probe", "ir_as_published", "ir_violation")
        rows: list[dict[str, Any]] = []
        for row in (row for piece in results for row in piece):
            plain = row["auction"].removeprefix(PUBLISHED)
            said = PAPER.get((row["market"], plain, row["rule"]), (None, None))
            rule = row["rule"] if plain in BY_RULE else "any"
            line: dict[str, Any] = {
                "market": row["market"],
                "auction": row["auction"],
                "rule": rule,
            }
            line |= {"paper_regret": said[0], "paper_ir": said[1]}
            for key in measured:
                line |= {f"{key}{end}": row.get(f"{key}{end}", nan) for end, nan in UNKNOWN.items()}
            rows.append(line | {"gaining": row["gaining"]})
        named = [
            row
            | {"auction": row["auction"] + ("" if row["rule"] == "any" else f" ({row['rule']})")}
            for row in rows
        ]
        drawn = [
            line | {"market": market.name}
            for market in self.markets
            for line in melted(
                [row for row in named if row["market"] == market.name],
                "regret",
                "measured_by",
                KINDS,
            )
        ]
        plot = Plot(
            "auction",
            "regret",
            "measured_by",
            "",
            "mean gain / cost",
            bars=True,
            panel="market",
            log=True,
        )
        sentences = [_sentence(row) for row in rows if row["paper_regret"] is not None]
        return Finding(rows, plot, sentences, drawn)


def _sentence(row: dict[str, Any]) -> str:
    return (
        f"{row['market']}, {row['auction']} ({row['rule']}): the paper says {row['paper_regret']}, its metric finds "
        f"{row['as_published']:.3f} on these weights, the corrected one {row['corrected']:.3f}, the probe {row['probe']:.3f}"
    )
