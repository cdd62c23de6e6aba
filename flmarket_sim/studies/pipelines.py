"""What kind of models a market sells: whole pipelines side by side, seed by seed.

A pipeline is a set of changes to the scenario: its auction, perturbation, aggregation and training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from flmarket_sim.experiments.market_runs import changed, load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Part
from flmarket_sim.statistics import OVER_RUNS, Estimate, from_seeds
from flmarket_sim.studies.accuracy_references import (
    CONSTANT,
    GUESSES,
    NOISELESS,
    WITHOUT_NOISE,
    compared_with,
    reference_lines,
    references,
)
from flmarket_sim.studies.study import Count, Finding, Plot, Row, Work, spread

QUALITY = ("accuracy", "balanced_accuracy")
ERRORS = ("coordinate_bound", "vector_bound", "true_error")
SHARES = ("true_over_vector", "true_over_coordinate", "spent_share", "privacy_sold")


class Variant(Part):
    """A market or a pipeline: a name, and values by the dotted paths of a scenario.

    `in_markets` has further values of a pipeline for markets by name, such as weights that were
    trained for them.
    """

    name: str = Field(min_length=1)
    changes: dict[str, Any] = {}
    in_markets: dict[str, dict[str, Any]] = {}

    def in_market(self, name: str) -> Variant:
        """This pipeline, as it is in the market of a name."""
        return Variant(name=self.name, changes=self.changes | self.in_markets.get(name, {}))

    def of(self, scenario: Scenario, **more: Any) -> Scenario:
        return changed(
            scenario, **{p.replace(".", "__"): v for p, v in self.changes.items()}, **more
        )


Variants = Annotated[Sequence[Variant], Field(min_length=1)]


@dataclass(frozen=True)
class Pipelines:
    """Test accuracy and errors of pipelines that meet the same seeds, in several markets.

    accuracy, balanced_accuracy   at the end of each evaluated round; the second is the mean recall
    coordinate_bound, vector_bound, true_error   means over the valid rounds
    true_over_vector, true_over_coordinate       the true error over each bound, both in the mean
    noiseless_accuracy, noiseless_balanced_accuracy   of the same pipeline without noise and market
    gain                          what is shown, above that of the first pipeline, seed by seed
    market_gain                   the same, above the first pipeline in the first market
    show                          the measure of figure, gain and sentences
    """

    name = "pipelines"
    markets: Variants
    pipelines: Variants
    seeds: Count = 8
    show: Literal["accuracy", "balanced_accuracy"] = "accuracy"

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"market": market.model_dump(), "seed": seed}
            | {"pipelines": [pipeline.model_dump() for pipeline in self.pipelines]}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for market in self.markets
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        """All pipelines on one seed of one market, and the constant guess beside them."""
        market = Variant.model_validate(work["market"]).of(scenario, seed=work["seed"])
        rows: list[Row] = []
        for each in map(Variant.model_validate, work["pipelines"]):
            run = each.in_market(work["market"]["name"]).of(market)
            data = load_data(run)
            origin = {"market": work["market"]["name"], "seed": work["seed"]}
            rounds, beside = rounds_only(run, data), references(run, data)
            rows += [origin | {"pipeline": each.name} | beside | row for row in evaluated(rounds)]
            if data is not None and each.name == work["pipelines"][0]["name"]:
                last = rows[-1]["round"]
                rows.append(origin | {"pipeline": CONSTANT, "round": last} | _guess(beside))
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[str, str, int], dict[int, Row]] = {}
        for measured in (row for task in results for row in task):
            place = (measured["market"], measured["pipeline"], measured["round"])
            cells.setdefault(place, {})[measured["seed"]] = measured
        rows: list[Row] = []
        for (market, pipeline, number), by_seed in cells.items():
            row: Row = {"market": market, "pipeline": pipeline, "round": number}
            row["seeds"] = len(by_seed)
            for key in (*QUALITY, *NOISELESS.values(), *ERRORS, *SHARES):
                row |= spread(key, over_seeds(by_seed, key))
            first = cells.get((market, self.pipelines[0].name, number), {})
            row |= spread("gain", _gain(by_seed, first, self.show))
            origin = cells.get((self.markets[0].name, self.pipelines[0].name, number), {})
            row |= spread("market_gain", _gain(by_seed, origin, self.show))
            rows.append(row)
        last = {(row["market"], row["pipeline"]): row for row in rows}
        label = f"test {self.show.replace('_', ' ')}"
        plot = Plot("round", self.show, "pipeline", "round", label, panel="market")
        sentences = [_sentence(last, market.name, self) for market in self.markets]
        other = next(key for key in QUALITY if key != self.show)
        beside = NOISELESS[self.show]
        shown = ("market", "pipeline", self.show, "gain", other, beside, "privacy_sold")
        drawn = _drawn(rows)
        drawn += reference_lines(drawn, plot, {WITHOUT_NOISE: beside})
        return Finding(list(last.values()), plot, sentences, drawn, OVER_RUNS, shown)


def evaluated(rounds: list[Row]) -> list[Row]:
    """The evaluated rounds of a run, each with the means of the run's errors and its money."""
    valid = [row for row in rounds if row["valid"]]
    means: Row = {
        key: float(np.mean([row[key] for row in valid])) if valid else None for key in ERRORS
    }
    for name in ("vector", "coordinate"):
        bound, error = means[f"{name}_bound"], means["true_error"]
        means[f"true_over_{name}"] = None if error is None else error / bound
    means["spent_share"] = sum(r["spent"] for r in rounds) / sum(r["budget"] for r in rounds)
    means["privacy_sold"] = sum(r["privacy_sold"] for r in rounds)
    return [
        {"round": row["round"] + 1} | {key: row[key] for key in QUALITY} | means
        for row in rounds
        if row["accuracy"] is not None
    ]


def _guess(beside: Row) -> Row:
    """The row of the constant guess: it has no noise, no errors and no price."""
    unknown = dict.fromkeys((*ERRORS, *SHARES))
    return unknown | {key: beside[column] for key, column in GUESSES.items()}


def over_seeds(by_seed: dict[int, Row], key: str) -> Estimate:
    """The mean over seeds; it is not known where a row does not have the number."""
    return from_seeds(np.array([row.get(key) for row in by_seed.values()], float))


def _gain(by_seed: dict[int, Row], first: dict[int, Row], shown: str) -> Estimate:
    common = [seed for seed in by_seed if seed in first]
    gains = [by_seed[seed][shown] - first[seed][shown] for seed in common]
    return from_seeds(np.array(gains, float))


def _drawn(rows: list[Row]) -> list[Row]:
    """Rows for the figure: the constant guess is a line over all rounds."""
    drawn = [row for row in rows if row["pipeline"] != CONSTANT]
    for guess in (row for row in rows if row["pipeline"] == CONSTANT):
        numbers = {row["round"] for row in drawn if row["market"] == guess["market"]}
        drawn += [guess | {"round": number} for number in sorted(numbers)]
    return drawn


def _sentence(last: dict[tuple[str, str], Row], market: str, study: Pipelines) -> str:
    parts = []
    for pipeline in (*study.pipelines, Variant(name=CONSTANT)):
        row = last[market, pipeline.name]
        ends = [row[study.show + end] for end in ("", "_low", "_high")]
        parts.append(f"{pipeline.name} {Estimate(*ends)}")
    own = [last[market, pipeline.name] for pipeline in study.pipelines]
    noiseless = compared_with(own, study.show)
    return f"{market}: {study.show.replace('_', ' ')} at the end: {'; '.join(parts)}{noiseless}"
