"""What a study is: three functions. Its options are constructor arguments.

tasks(scenario)              the plain data of each task
measure(scenario, work)      the rows of one task: a static function, so that a result depends
                             on the scenario and on `work` alone
conclude(scenario, results)  the finding, from the rows of all tasks
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from flmarket_sim.auctions import named
from flmarket_sim.auctions.auction import Auction, auction_in
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.perturbation.scenario_error import scenario_error
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import OVER_POPULATIONS, Estimate, median, trimmed_mean
from flmarket_sim.strategy.search_effort import effort_of

Progress = Callable[[int, int], None]
Row = dict[str, Any]
Work = dict[str, Any]


def _with_auctions(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        named(name)  # a name that is unknown stops the study before it runs
    return names


def _with_effort(name: str) -> str:
    effort_of(name)
    return name


Names = Annotated[Sequence[str], Field(min_length=1)]
Auctions = Annotated[Names, AfterValidator(_with_auctions)]
SearchEffort = Annotated[str, AfterValidator(_with_effort)]
Count = Annotated[int, Field(ge=1, le=10**6)]
Factors = Annotated[Sequence[Annotated[float, Field(gt=0)]], Field(min_length=1)]


@dataclass(frozen=True)
class Plot:
    """A figure of a finding's rows: `y` over `x`, one line (or group of bars) for each `group`.

    `y` names a column; where it is an estimate, columns `y`_low and `y`_high hold its interval.
    `level` draws a horizontal line. `panel` names a column: each of its values has a panel. The
    vertical axis ends at `top`, even if values lie above it.
    """

    x: str
    y: str
    group: str
    x_label: str
    y_label: str
    bars: bool = False
    log: bool = False
    level: float | None = None
    panel: str | None = None
    log_x: bool = False
    top: float | None = None


@dataclass(frozen=True)
class Finding:
    """The result of a study: rows, a plot of them (or of the rows `drawn`), and sentences.

    `intervals` says what the intervals of its estimates are of. `shown` names the columns that
    answer the question, most important first: a terminal shows those that it has room for.
    `shown_rows` are the rows that answer it, by default all.
    """

    rows: list[Row]
    plot: Plot
    sentences: list[str] = field(default_factory=list)
    drawn: list[Row] | None = None
    intervals: str = OVER_POPULATIONS
    shown: tuple[str, ...] = ()
    shown_rows: list[Row] | None = None

    def shown_columns(self) -> tuple[str, ...]:
        """`shown`, or else the columns of the figure."""
        drawn = (self.plot.panel, self.plot.group, self.plot.x, self.plot.y)
        columns = dict.fromkeys(name for row in self.rows for name in row)
        plotted = tuple(dict.fromkeys(name for name in drawn if name in columns))
        return self.shown or plotted or tuple(columns)[:6]

    def __repr__(self) -> str:
        return f"<Finding with {len(self.rows):,} rows: {' '.join(self.sentences)}>"


class Study(Protocol):
    """A question about a market, answered by many tasks."""

    name: str

    def tasks(self, scenario: Scenario) -> list[Work]: ...

    @staticmethod
    def measure(scenario: Scenario, work: Work) -> list[Row]: ...

    def conclude(self, scenario: Scenario, results: list[list[Row]]) -> Finding: ...


def auction_of(name: str, scenario: Scenario) -> Auction:
    """The auction behind a name as in `auctions.named`, set for the scenario's market."""
    return auction_in(named(name), scenario_error(scenario))


def spread(name: str, value: Estimate) -> dict[str, float]:
    """Columns of an estimate: its mean and the ends of its interval."""
    return {name: value.mean, f"{name}_low": value.low, f"{name}_high": value.high}


def heavy_tailed(
    name: str, values: NDArray[np.float64], population: NDArray[np.int64] | None
) -> dict[str, float]:
    """Columns NAME_median and NAME_trimmed of numbers (K, ...) whose mean a few of them decide."""
    return spread(f"{name}_median", median(values, population)) | spread(
        f"{name}_trimmed", trimmed_mean(values, population)
    )


def melted(rows: list[Row], name: str, group: str, kinds: dict[str, str]) -> list[Row]:
    """Rows for a figure with a bar for each kind.

    The estimate in column kinds[label] of every row appears as `name`, labelled in `group`.
    """
    ends = ("", "_low", "_high")
    return [
        {"auction": row["auction"], group: label} | {f"{name}{end}": row[key + end] for end in ends}
        for row in rows
        for label, key in kinds.items()
    ]


def markets(
    scenario: Scenario, profiles: int, seed: int | None = None
) -> tuple[Profiles, NDArray[np.float64]]:
    """Profiles and budgets (K,) of a scenario, with budgets drawn from the scenario's range."""
    drawn = scenario.seed if seed is None else seed
    truth, uniform = draw_markets(scenario, profiles, None, drawn)
    share = (uniform - 0.1) / 1.9
    low, high = scenario.budget.factor or scenario.budget.amount or (0.1, 2.0)
    money = low + (high - low) * share
    return truth, money * truth.total_value() if scenario.budget.factor is not None else money
