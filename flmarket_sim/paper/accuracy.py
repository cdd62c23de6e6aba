"""How accurate the buyer's model becomes under each auction and rule: the paper's figure 3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.experiments.market_runs import load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.paper.paper_market import PUBLISHED, PaperMarket, in_panels
from flmarket_sim.paper.paper_study import PaperStudy
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import OVER_RUNS, Estimate, from_seeds
from flmarket_sim.studies.accuracy_references import (
    CONSTANT_GUESS,
    GUESSES,
    NOISELESS,
    WITHOUT_NOISE,
    compared_with,
    reference_lines,
    references,
)
from flmarket_sim.studies.study import Count, Finding, Plot, Row, Work, spread

QUALITY = ("accuracy", "balanced_accuracy")
BESIDE = ("balanced_accuracy", *GUESSES.values(), *NOISELESS.values())
OURS = "ours: "  # prefix of the auction with another release and training than the paper's


@dataclass(frozen=True, kw_only=True)
class Accuracy(PaperStudy):
    """Test accuracy by round: means over seeds with Student's interval.

    All auctions and rules meet the same seeds, so differences are taken seed by seed.

    true_error        mean squared distance of the delivered gradient from the gradient without
                      privacy, over the valid rounds
    over_baseline     accuracy minus that of the first auction under the same rule; auctions with
                      published weights are compared with the first auction's published weights
    over_last_rule    accuracy minus that of the same auction under the last rule
    noiseless_accuracy   without noise and market, with the same training (`constant_guess`: always
                      the commonest class)

    `ours` are changes of the scenario, by dotted paths, with which the auction `ours_auction`
    stands beside the paper's setting: the same owners, privacy budgets and money, and another
    release and training. The paper's claims are not decided by it.
    """

    name = "accuracy"
    seeds: Count = 30
    ours: dict[str, Any] | None = None
    ours_auction: str = "seq-price"

    def tasks(self, scenario: Scenario) -> list[Work]:
        ours = {"ours": self.ours, "ours_auction": self.ours_auction} if self.ours else {}
        return [
            self.work(market) | {"seed": seed} | ours
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for market in self.markets
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """All auctions and rules on one seed of one market."""
        market, seed = PaperMarket.model_validate(work["market"]), work["seed"]
        rows: list[Row] = []
        data = load_data(market.of(scenario, seed=seed))
        beside: Row = {}
        for name, rule in market.policies(work["auctions"], work["rules"], work["authors"]):
            auction = market.auction_options(name, rule, work["authors"])
            run = market.of(scenario, seed=seed, auction=auction, aggregation={"name": rule})
            beside = beside or references(run, data)  # the same for every auction and rule
            origin = {"market": market.name, "auction": name, "rule": rule, "seed": seed} | beside
            rows += [origin | row for row in _evaluated(rounds_only(run, data))]
        if work.get("ours"):
            name, rule = work["ours_auction"], work["rules"][0]
            changes = {path.replace(".", "__"): value for path, value in work["ours"].items()}
            run = market.of(
                scenario, seed=seed, auction=market.auction_options(name, rule), **changes
            )
            origin = {"market": market.name, "auction": OURS + name, "rule": rule, "seed": seed}
            origin |= references(run, data)
            rows += [origin | row for row in _evaluated(rounds_only(run, data))]
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[Any, ...], dict[int, Row]] = {}
        for row in (row for task in results for row in task):
            cell = cells.setdefault((row["market"], row["auction"], row["rule"], row["round"]), {})
            cell[row["seed"]] = row
        rows: list[Row] = []
        for (market, auction, rule, number), by_seed in cells.items():
            prefix = PUBLISHED if auction.startswith(PUBLISHED) else ""
            row = {"market": market, "auction": auction, "rule": rule, "round": number}
            row |= {"seeds": len(by_seed)} | spread("accuracy", _over_seeds(by_seed, "accuracy"))
            for key, place in (
                ("over_baseline", (market, prefix + self.auctions[0], rule, number)),
                ("over_last_rule", (market, auction, self.rules[-1], number)),
            ):
                row |= spread(key, _difference(by_seed, cells.get(place, {})))
            for key in (*BESIDE, "error_bound", "true_error", "invalid"):
                row |= spread(key, _over_seeds(by_seed, key))
            rows.append(row)
        label = f"test accuracy of {scenario.model.name}"
        plot = Plot("round", "accuracy", "auction", "round", label, panel="panel")
        sentences = [_sentence(rows, market.name, scenario.model.name) for market in self.markets]
        end = max(row["round"] for row in rows)
        at_the_end = [row for row in rows if row["round"] == end]
        shown = (
            "market",
            "auction",
            "rule",
            "round",
            "accuracy",
            "over_baseline",
            "balanced_accuracy",
            "noiseless_accuracy",
            "constant_guess",
            "true_error",
        )
        drawn = in_panels(rows)
        lines = {WITHOUT_NOISE: NOISELESS["accuracy"], CONSTANT_GUESS: GUESSES["accuracy"]}
        drawn += reference_lines(drawn, plot, lines)
        return Finding(rows, plot, sentences, drawn, OVER_RUNS, shown, at_the_end)


def _evaluated(rounds: list[Row]) -> list[Row]:
    """The evaluated rounds of a run, each with the means of the run's errors."""
    valid = [row for row in rounds if row["valid"]]
    means: Row = {
        key: float(np.mean([row[key] for row in valid])) if valid else None
        for key in ("error_bound", "true_error")
    }
    means["invalid"] = 1 - len(valid) / len(rounds)
    return [
        {"round": row["round"] + 1} | {key: row[key] for key in QUALITY} | means
        for row in rounds
        if row["accuracy"] is not None
    ]


def _over_seeds(by_seed: dict[int, Row], key: str) -> Estimate:
    return from_seeds(np.array([row.get(key) for row in by_seed.values()], float))


def _difference(by_seed: dict[int, Row], baseline: dict[int, Row]) -> Estimate:
    """The accuracy above the baseline's, over the seeds that both have."""
    common = [seed for seed in by_seed if seed in baseline]
    return from_seeds(
        np.array([by_seed[seed]["accuracy"] - baseline[seed]["accuracy"] for seed in common])
    )


def _sentence(rows: list[Row], market: str, model: str) -> str:
    in_market = [row for row in rows if row["market"] == market]
    end = max(row["round"] for row in in_market)
    last = [row for row in in_market if row["round"] == end]
    accuracies = [
        f"{row['auction']} with {row['rule']} "
        f"{Estimate(row['accuracy'], row['accuracy_low'], row['accuracy_high'])}"
        for row in sorted(last, key=lambda row: -float(row["accuracy"]))
    ]
    said = f"{market}, model {model}, after round {end}: {', '.join(accuracies)}"
    return said + compared_with(last)
