"""What cheats do to a buyer, by their share of the owners, under robust rules and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.market_runs import load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Plugin, Probability
from flmarket_sim.statistics import OVER_RUNS, Estimate, from_seeds
from flmarket_sim.studies.cheating import last_accuracy, mean_of_valid
from flmarket_sim.studies.pipelines import Variant, Variants
from flmarket_sim.studies.study import Count, Finding, Plot, Row, Work, spread

LABELS = {"accuracy": "test accuracy", "error_ratio": "true error / that without cheats"}


def _known(cheats: Sequence[Plugin]) -> Sequence[Plugin]:
    for cheat in cheats:
        try:
            registry.cheats.create(cheat.name, **cheat.options)
        except InputError as error:
            raise ValueError(str(error)) from None
    return cheats


Cheats = Annotated[Sequence[Plugin], Field(min_length=1), AfterValidator(_known)]
Shares = Annotated[Sequence[Probability], Field(min_length=1)]


@dataclass(frozen=True)
class ShareOfCheats:
    """Accuracy and true error by the share of owners who cheat, for pipelines side by side.

    A share of the owners cheats in one way; all pipelines meet the same seeds. The honest market,
    with a share of 0, is always among the shares.

    accuracy     on the test records, at the end
    true_error   squared error of the delivered gradient, mean of the valid rounds
    error_ratio  that error over the error of the first pipeline without cheats, seed by seed
    show         the measure of figure and sentences
    """

    name = "cheat-share"
    cheats: Cheats
    pipelines: Variants
    shares: Shares = (0.1, 0.2, 0.3, 0.4)
    seeds: Count = 4
    show: Literal["accuracy", "error_ratio"] = "accuracy"

    def tasks(self, scenario: Scenario) -> list[Work]:
        """A task has all cheats and shares: they have the honest market in common."""
        return [
            {"seed": seed, "pipeline": pipeline.model_dump(), "shares": list(self.shares)}
            | {"cheats": [cheat.model_dump() for cheat in self.cheats]}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for pipeline in self.pipelines
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        pipeline = Variant.model_validate(work["pipeline"])
        data = load_data(pipeline.of(scenario))

        def played(cheats: list[Row]) -> Row:
            market = pipeline.of(scenario, seed=work["seed"], owners__cheats=cheats)
            rounds = rounds_only(market, load_data(market) if data is None else data)
            error = mean_of_valid(rounds, "true_error")
            return {"accuracy": last_accuracy(rounds), "true_error": error}

        honest = played([])
        rows: list[Row] = []
        for cheat in work["cheats"]:
            cell = {"cheat": label(Plugin.model_validate(cheat)), "pipeline": pipeline.name}
            cell["seed"] = work["seed"]
            rows.append(cell | {"share": 0.0} | honest)
            for share in work["shares"]:
                if share > 0:
                    found = played([cheat | {"share": share}])
                    rows.append(cell | {"share": share} | found)
        return rows

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        cells: dict[tuple[str, str, float], dict[int, Row]] = {}
        for run in (row for task in results for row in task):
            place = (run["cheat"], run["pipeline"], run["share"])
            cells.setdefault(place, {})[run["seed"]] = run
        rows: list[Row] = []
        for (cheat, pipeline, share), runs in cells.items():
            row: Row = {"cheat": cheat, "share": share, "pipeline": pipeline, "seeds": len(runs)}
            for measure in ("accuracy", "true_error"):
                values = np.array([run[measure] for run in runs.values()], float)
                row |= spread(measure, from_seeds(values))
            honest = cells[cheat, self.pipelines[0].name, 0.0]
            ratios = [run["true_error"] / honest[seed]["true_error"] for seed, run in runs.items()]
            rows.append(row | spread("error_ratio", from_seeds(np.array(ratios, float))))
        plot = Plot(
            "share", self.show, "pipeline", "share of owners who cheat", LABELS[self.show],
            panel="cheat", log=self.show == "error_ratio",
        )  # fmt: skip
        other = next(measure for measure in LABELS if measure != self.show)
        shown = ("cheat", "share", "pipeline", self.show, other)
        most = max(row["share"] for row in rows)
        shown_rows = [row for row in rows if row["share"] == most]
        names = dict.fromkeys(row["cheat"] for row in rows)
        sentences = [_sentence(name, rows, self) for name in names]
        return Finding(rows, plot, sentences, None, OVER_RUNS, shown, shown_rows)


def label(cheat: Plugin) -> str:
    """A cheat as a figure names it: with its options."""
    options = [f"{key} = {value}" for key, value in cheat.options.items()]
    return ", ".join([cheat.name, *options])


def _sentence(cheat: str, rows: list[Row], study: ShareOfCheats) -> str:
    own = [row for row in rows if row["cheat"] == cheat]
    most = max(row["share"] for row in own)
    first = study.pipelines[0].name
    (honest,) = (row for row in own if row["share"] == 0.0 and row["pipeline"] == first)
    parts = [
        f"{row['pipeline']} {_estimate(row, study.show)}" for row in own if row["share"] == most
    ]
    return (
        f"{cheat}, {most:.0%} of the owners: {study.show.replace('_', ' ')} {'; '.join(parts)} "
        f"(without cheats {first} has {_estimate(honest, study.show)})"
    )


def _estimate(row: Row, measure: str) -> Estimate:
    return Estimate(*(row[measure + end] for end in ("", "_low", "_high")))
