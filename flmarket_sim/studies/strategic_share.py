"""What becomes of a market as more of its owners misreport."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.experiments.market_runs import auction_table, changed, load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Probability
from flmarket_sim.statistics import OVER_RUNS, from_seeds
from flmarket_sim.studies.study import Auctions, Count, Finding, Plot, Row, Work, spread

MEASURES = (
    "error_bound",
    "bound_of_data",
    "true_error",
    "accuracy",
    "spent_share",
    "surplus_share",
    "invalid",
)


@dataclass(frozen=True)
class StrategicShare:
    """Error, accuracy, spending and owners' surplus as the share of owners with a behaviour grows.

    Shares are paired over seeds: every share meets the same worlds.
    """

    name = "strategic-share"
    auctions: Auctions
    behaviour: str = "best-response"
    shares: Annotated[Sequence[Probability], Field(min_length=1)] = (0.0, 0.25, 0.5, 0.75, 1.0)
    seeds: Count = 5
    options: dict[str, Any] | None = None

    def tasks(self, scenario: Scenario) -> list[Work]:
        return [
            {"auction": name, "share": share, "seed": seed}
            | {"behaviour": {"name": self.behaviour, "share": share, **(self.options or {})}}
            for seed in range(scenario.seed, scenario.seed + self.seeds)
            for name in self.auctions
            for share in self.shares
        ]

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]:
        market = changed(
            scenario,
            seed=work["seed"],
            auction=auction_table(work["auction"]),
            owners__behaviours=[work["behaviour"]] if work["share"] > 0 else [],
        )
        means = _means(rounds_only(market, load_data(market)))
        return [{key: work[key] for key in ("auction", "share")} | means]

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding:
        runs = [row for task in results for row in task]
        cells: dict[tuple[str, float], list[Row]] = {}
        for run in runs:
            cells.setdefault((run["auction"], run["share"]), []).append(run)
        rows: list[Row] = []
        for (name, share), seeds in cells.items():
            row: Row = {"auction": name, "share": share, "seeds": self.seeds}
            for measure in MEASURES:
                row |= spread(measure, from_seeds(_column(seeds, measure)))
            ratio = _column(seeds, "bound_of_data") / _column(
                cells[name, self.shares[0]], "bound_of_data"
            )
            rows.append(row | spread("error_ratio", from_seeds(ratio)))
        label = "mean error bound of the true data"
        axis = f"share of owners with {self.behaviour}"
        plot = Plot("share", "bound_of_data", "auction", axis, label)
        sentences = [
            _sentence(name, [row for row in rows if row["auction"] == name])
            for name in self.auctions
        ]
        shown = ("auction", "share", "bound_of_data", "error_bound", "surplus_share", "accuracy")
        return Finding(rows, plot, sentences, intervals=OVER_RUNS, shown=shown)


def _column(rows: list[Row], name: str) -> NDArray[np.float64]:
    """A column as numbers, nan where it is empty."""
    return np.array([row[name] for row in rows], float)


def _means(rounds: list[Row]) -> Row:
    """Means over the valid rounds of a run."""
    valid = _column(rounds, "valid") > 0
    accuracy = _column(rounds, "accuracy")
    budget = _column(rounds, "budget").sum()
    spent = _column(rounds, "spent")

    def mean(name: str) -> float:
        values = _column(rounds, name)[valid]
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

    evaluated = accuracy[np.isfinite(accuracy)]
    return {
        "error_bound": mean("error_bound"),
        "bound_of_data": mean("bound_of_data"),
        "true_error": mean("true_error"),
        "accuracy": float(evaluated[-1]) if len(evaluated) else float("nan"),
        "spent_share": float(spent.sum() / budget),
        "surplus_share": float((spent - _column(rounds, "value_sold")).sum() / budget),
        "invalid": float(1 - valid.mean()),
    }


def _sentence(name: str, rows: list[Row]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"{name}: with {last['share']:.0%} liars instead of {first['share']:.0%} the error bound "
        f"of the true data goes from {first['bound_of_data']:.2f} to {last['bound_of_data']:.2f}, "
        f"the reported one to {last['error_bound']:.2f}, owners' surplus from "
        f"{first['surplus_share']:.0%} to {last['surplus_share']:.0%} of the money"
    )
