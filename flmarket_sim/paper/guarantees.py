"""How far auctions are from truthful and individually rational: the paper's table.

Regret is measured by the authors' own procedure, by the same with its axis mended, by a corrected
metric and by the probe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import Differentiable, auction_in
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.paper.paper_market import BY_RULE, PUBLISHED, PaperMarket
from flmarket_sim.paper.paper_study import PaperStudy
from flmarket_sim.paper.published_attack import Attack, Floats
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import estimate
from flmarket_sim.strategy.probe import probe
from flmarket_sim.studies.study import (
    Count,
    Finding,
    Plot,
    Row,
    SearchEffort,
    Work,
    heavy_tailed,
    melted,
    spread,
)
from flmarket_sim.studies.study import markets as draw

PAPER = {  # the paper's table: regret and IR violation by market, auction and rule
    ("IID", "regretnet", "opt-aggr"): (0.9351, 0.1684),
    ("IID", "m-regretnet", "opt-aggr"): (0.7715, 0.1508),
    ("IID", "dm-regretnet", "convl-aggr"): (0.0617, 0.0251),
    ("IID", "dm-regretnet", "opt-aggr"): (0.0556, 0.0265),
    ("non-IID", "regretnet", "opt-aggr"): (0.8164, 0.3864),
    ("non-IID", "m-regretnet", "opt-aggr"): (0.6652, 0.2020),
    ("non-IID", "dm-regretnet", "convl-aggr"): (0.0516, 0.0210),
    ("non-IID", "dm-regretnet", "opt-aggr"): (0.0428, 0.0259),
}
KINDS = {
    "as published": "as_published",
    "axis mended": "axis_mended",
    "corrected metric": "corrected",
    "probe": "probe",
}
GAINS = ("as_published", "axis_mended", "luck", "corrected", "probe")
SHORTFALLS = ("ir_as_published", "ir_tested_on", "ir_violation")
ENDS = ("", "_low", "_high")


@dataclass(frozen=True, kw_only=True)
class Guarantees(PaperStudy):
    """Regret (mean gain / cost) and IR violation (mean shortfall / cost), each in several ways.

    paper_regret, paper_ir    the numbers of the paper's table
    as_published     the procedure of the authors' code: the last of `ascent` plain gradient steps
                     on valuations, privacy budget and records, with valuations monotone along
                     the wrong axis; one draw of each report for lotteries. Its reports need not be
                     monotone over the levels, and a market would refuse those that are not
    axis_mended      the same with valuations that are monotone over the levels
    luck             lotteries only: what that metric calls regret when nobody misreports
    corrected        expected utilities, a smooth choice of levels, the best of several iterates
    probe            the best misreports that the standard search finds, in `probed` of the markets
    ir_as_published  IR violation of one draw
    ir_tested_on     the same, with the records dealt out by the market's `tested_on`; for published
                     weights
    ir_violation     IR violation in expectation

    Gains have a median and a mean without the largest and smallest tenth, NAME_median and
    NAME_trimmed, since a few owners decide their mean. as_published, axis_mended, luck and
    ir_as_published divide by the expected cost, however small it is. The others divide by that cost
    or by the worth of 1/8 of the owner's privacy budget, whichever is larger. Only learned auctions
    have a network that the attack can follow; other auctions have the probe alone.
    """

    name = "guarantees"
    profiles: Count = 1000
    probed: Count = 100
    effort: SearchEffort = "standard"
    ascent: Count = 100

    def tasks(self, scenario: Scenario) -> list[Work]:
        """Tasks for auctions that are trained for a rule under every rule, and for others once.

        No rule changes what owners are paid.
        """
        settings = {
            "authors": self.authors,
            "profiles": self.profiles,
            "probed": min(self.probed, self.profiles),
            "effort": self.effort,
            "ascent": self.ascent,
        }
        return [
            {"market": market.model_dump(), "auction": name, "rule": rule}
            | {"weights": market.identity(name, rule, self.authors)}
            | settings
            for name in self.auctions
            for rule in (self.rules if name.removeprefix(PUBLISHED) in BY_RULE else self.rules[:1])
            for market in self.markets
            if market.has(name, rule, self.authors)
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = PaperMarket.model_validate(work["market"])
        plain = market.auction(work["auction"], work["rule"], work["authors"])
        auction: Any = auction_in(plain, scenario_error(scenario))
        truth, budget = draw(market.of(scenario), work["profiles"], seed=scenario.seed + 1)
        utility, cost = expected_utility(auction, truth, truth.bids(), budget)
        few = slice(0, work["probed"])
        search = probe(
            auction, truth.take(few), budget[few], seed=scenario.seed, effort=work["effort"]
        )
        measures = {
            "probe": search.relative_gain,
            "ir_violation": np.maximum(-utility, 0.0) / measured_against(truth, cost),
        }
        if isinstance(auction, Differentiable):
            attack = Attack(auction, truth, budget, work["ascent"])
            measures |= {
                "as_published": attack.as_published(scenario.seed),
                "axis_mended": attack.axis_mended(scenario.seed),
                "corrected": attack.corrected(),
                "ir_as_published": attack.drawn_shortfall(),
            }
            if not attack.auction.learned.deterministic:
                measures["luck"] = attack.luck()
            if market.tested_on is not None and work["auction"].startswith(PUBLISHED):
                measures["ir_tested_on"] = _tested_on(market, scenario, auction, work["profiles"])
        row: Row = {"market": market.name, "auction": work["auction"], "rule": work["rule"]}
        for key, values in measures.items():
            population = truth.population[: len(values)]
            row |= spread(key, estimate(values.mean(axis=1), population))
            if key in GAINS:
                row |= heavy_tailed(key, values, population)
        return [row | {"gaining": float((measures["probe"] > 0.01).mean())}]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        columns = [
            key + kind + end
            for key in (*GAINS, *SHORTFALLS)
            for kind in (("", "_median", "_trimmed") if key in GAINS else ("",))
            for end in ENDS
        ]
        rows: list[Row] = []
        for row in (row for task in results for row in task):
            plain = row["auction"].removeprefix(PUBLISHED)
            regret, ir = PAPER.get((row["market"], plain, row["rule"]), (None, None))
            rule = row["rule"] if plain in BY_RULE else "any"
            line = {"market": row["market"], "auction": row["auction"], "rule": rule}
            line |= {"paper_regret": regret, "paper_ir": ir}
            line |= {column: row.get(column, float("nan")) for column in columns}
            rows.append(line | {"gaining": row["gaining"]})
        bars = [
            bar | {"market": row["market"]}
            for market in self.markets
            for row in rows
            if row["market"] == market.name
            for bar in melted([row | {"auction": _bar_label(row)}], "regret", "measured_by", KINDS)
        ]
        plot = Plot(
            "auction", "regret", "measured_by", "", "mean gain / cost",
            bars=True, panel="market", log=True,
        )  # fmt: skip
        sentences = [_sentence(row) for row in rows if row["paper_regret"] is not None]
        measured = ("as_published", "paper_regret", "probe", "ir_as_published", "paper_ir")
        shown = ("market", "auction", "rule", *measured)
        return Finding(rows, plot, sentences, bars, shown=shown)


def _tested_on(market: PaperMarket, scenario: Scenario, auction: Any, profiles: int) -> Floats:
    """IR violation of one draw, with the records dealt out as in `tested_on`."""
    assert market.tested_on is not None
    there = market.model_copy(update={"partition": market.tested_on})
    truth, budget = draw(there.of(scenario), profiles, seed=scenario.seed + 1)
    return Attack(auction, truth, budget).drawn_shortfall()


def _bar_label(row: Row) -> str:
    return str(row["auction"] if row["rule"] == "any" else f"{row['auction']} ({row['rule']})")


def _sentence(row: Row) -> str:
    return (
        f"{row['market']}, {row['auction']} ({row['rule']}): the paper says {row['paper_regret']}, "
        f"the authors' procedure finds {row['as_published']:.3f} on these weights, with the axis "
        f"mended {row['axis_mended']:.3f}, the corrected metric {row['corrected']:.3f}, the probe "
        f"{row['probe']:.3f}"
    )
