"""What a buyer's money buys: the accuracy of her model by the budget, auction and pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from flmarket_sim.experiments.market_runs import auction_table, load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import OVER_RUNS, Estimate
from flmarket_sim.studies.accuracy_references import (
    CONSTANT_GUESS,
    GUESSES,
    NOISELESS,
    WITHOUT_NOISE,
    compared_with,
    reference_lines,
    references,
)
from flmarket_sim.studies.pipelines import Variant, Variants, evaluated, over_seeds
from flmarket_sim.studies.study import Auctions, Count, Factors, Finding, Plot, Row, Work, spread

MEASURES = ("accuracy", "balanced_accuracy", "vector_bound", "true_error", "spent", "privacy_sold")


@dataclass(frozen=True)
class BuyersCurve:
    """Accuracy at the end of a run by the budget factor of every round.

    All auctions, pipelines and budgets meet the same seeds. `spent` is the money of the whole run,
    and `privacy_sold` the sum of all privacy losses. `noiseless_accuracy` is that of the same
    pipeline without noise and market.
    """

    name = "buyers-curve"
    auctions: Auctions
    pipelines: Variants
    factors: Factors = (0.1, 0.3, 1.0, 2.0)
    seeds: Count = 8

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": auction, "pipeline": pipeline.model_dump(), "seed": seed}
            | {"factors": list(self.factors)}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for pipeline in self.pipelines
            for auction in self.auctions
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        rows: list[Row] = []
        beside: Row = {}
        pipeline = Variant.model_validate(work["pipeline"])
        for factor in work["factors"]:
            run = pipeline.of(
                scenario,
                seed=work["seed"],
                auction=auction_table(work["auction"]),
                budget__factor=[factor, factor],
            )
            rounds = rounds_only(run, load_data(run))
            beside = beside or references(run, load_data(run))  # the same for every budget
            last = evaluated(rounds)[-1] | {"spent": sum(row["spent"] for row in rounds)}
            origin = {"auction": work["auction"], "pipeline": pipeline.name, "seed": work["seed"]}
            measured = {key: last[key] for key in MEASURES} | beside
            rows.append(origin | {"budget_factor": factor} | measured)
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[str, str, float], dict[int, Row]] = {}
        for measured in (row for task in results for row in task):
            place = (measured["pipeline"], measured["auction"], measured["budget_factor"])
            cells.setdefault(place, {})[measured["seed"]] = measured
        rows: list[Row] = []
        for (pipeline, auction, factor), by_seed in cells.items():
            row: Row = {"pipeline": pipeline, "auction": auction, "budget_factor": factor}
            row["seeds"] = len(by_seed)
            for key in (*MEASURES, *GUESSES.values(), *NOISELESS.values()):
                row |= spread(key, over_seeds(by_seed, key))
            rows.append(row)
        plot = Plot(
            "budget_factor",
            "accuracy",
            "auction",
            "budget of a round / what its bidders' privacy is worth",
            "test accuracy",
            panel="pipeline",
            log_x=True,
        )
        sentences = [_sentence(rows, variant.name) for variant in self.pipelines]
        shown = (
            "pipeline",
            "auction",
            "budget_factor",
            "accuracy",
            "balanced_accuracy",
            "noiseless_accuracy",
            "constant_guess",
            "privacy_sold",
        )
        lines = {WITHOUT_NOISE: NOISELESS["accuracy"], CONSTANT_GUESS: GUESSES["accuracy"]}
        drawn = rows + reference_lines(rows, plot, lines)
        return Finding(rows, plot, sentences, drawn, OVER_RUNS, shown)


def _sentence(rows: list[Row], pipeline: str) -> str:
    """The best auction at the smallest and at the largest budget."""
    of_pipeline = [row for row in rows if row["pipeline"] == pipeline]
    parts = []
    for factor in (min, max):
        money = factor(row["budget_factor"] for row in of_pipeline)
        best = max(
            (row for row in of_pipeline if row["budget_factor"] == money),
            key=lambda row: float(row["accuracy"]),
        )
        accuracy = Estimate(best["accuracy"], best["accuracy_low"], best["accuracy_high"])
        parts.append(f"at factor {money:g} {best['auction']} is best with {accuracy}")
    return f"{pipeline}: {', '.join(parts)}{compared_with(of_pipeline)}"
