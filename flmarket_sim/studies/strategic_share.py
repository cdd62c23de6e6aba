"""What becomes of a market as more of its owners lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from flmarket_sim.auctions import named
from flmarket_sim.eventlog import read_events
from flmarket_sim.experiments.market_runs import auction_table, changed, load_data, ran
from flmarket_sim.scenario.model import Probability, Scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.studies.study import Count, Finding, Names, Plot, Progress, spread

MEASURES = (
    "error_bound",
    "bound_of_data",
    "true_error",
    "accuracy",
    "spent_share",
    "surplus_share",
    "invalid",
)


class StrategicShare:
    """Error, accuracy, spending and owners' surplus as the share of owners with a behaviour grows; paired over seeds."""

    name = "strategic-share"

    def __init__(
        self,
        auctions: Names,
        behaviour: str = "best-response",
        shares: Annotated[Sequence[Probability], Field(min_length=1)] = (0.0, 0.25, 0.5, 0.75, 1.0),
        seeds: Count = 5,
        options: dict[str, Any] | None = None,
    ) -> None:
        for name in auctions:
            named(name)
        self.auctions, self.behaviour, self.shares, self.seeds = (
            list(auctions),
            behaviour,
            list(shares),
            seeds,
        )
        self.options = options or {}

    def run(self, scenario: Scenario, progress: Progress) -> Finding:
        cells: dict[tuple[str, float], list[dict[str, float]]] = {}
        total, done = len(self.auctions) * len(self.shares) * self.seeds, 0
        for seed in range(scenario.seed, scenario.seed + self.seeds):
            data = load_data(changed(scenario, seed=seed))
            for name in self.auctions:
                for share in self.shares:
                    lying = (
                        [{"name": self.behaviour, "share": share, **self.options}]
                        if share > 0
                        else []
                    )
                    one = changed(
                        scenario, seed=seed, auction=auction_table(name), owners__behaviours=lying
                    )
                    with ran(one, data) as folder:
                        cells.setdefault((name, share), []).append(_measured(folder))
                    done += 1
                    progress(done, total)
        rows: list[dict[str, Any]] = []
        for (name, share), runs in cells.items():
            row: dict[str, Any] = {"auction": name, "share": share, "seeds": self.seeds}
            for measure in MEASURES:
                row |= spread(measure, from_seeds(np.array([run[measure] for run in runs])))
            base = np.array([run["bound_of_data"] for run in cells[name, self.shares[0]]])
            row |= spread(
                "error_ratio", from_seeds(np.array([run["bound_of_data"] for run in runs]) / base)
            )
            rows.append(row)
        plot = Plot(
            "share",
            "bound_of_data",
            "auction",
            f"share of owners with {self.behaviour}",
            "mean error bound of the true data",
        )
        return Finding(
            rows,
            plot,
            [
                _sentence(name, [row for row in rows if row["auction"] == name])
                for name in self.auctions
            ],
        )


def _measured(folder: Any) -> dict[str, float]:
    """Means over the valid rounds of a run."""
    rounds = read_events(folder, "round")

    def column(name: str) -> Any:
        return rounds.column(name).to_numpy(zero_copy_only=False).astype(float)

    valid = column("valid") > 0
    accuracy = column("accuracy")
    budget = column("budget").sum()

    def mean(name: str) -> float:
        return (
            float(np.nanmean(column(name)[valid]))
            if valid.any() and np.isfinite(column(name)[valid]).any()
            else float("nan")
        )

    return {
        "error_bound": mean("error_bound"),
        "bound_of_data": mean("bound_of_data"),
        "true_error": mean("true_error"),
        "accuracy": float(accuracy[np.isfinite(accuracy)][-1])
        if np.isfinite(accuracy).any()
        else float("nan"),
        "spent_share": float(column("spent").sum() / budget),
        "surplus_share": float((column("spent") - column("value_sold")).sum() / budget),
        "invalid": float(1 - valid.mean()),
    }


def _sentence(name: str, rows: list[dict[str, Any]]) -> str:
    first, last = rows[0], rows[-1]
    return (
        f"{name}: with {last['share']:.0%} liars instead of {first['share']:.0%} the error bound of the true data goes from "
        f"{first['bound_of_data']:.2f} to {last['bound_of_data']:.2f}, the reported one to {last['error_bound']:.2f}, owners' surplus from "
        f"{first['surplus_share']:.0%} to {last['surplus_share']:.0%} of the money"
    )
