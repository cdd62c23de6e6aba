"""What a study is: `run(scenario, progress) -> Finding`. Options are constructor arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.statistics import Estimate

Progress = Callable[[int, int], None]
Names = Annotated[Sequence[str], Field(min_length=1)]
Count = Annotated[int, Field(ge=1, le=10**6)]
Factors = Annotated[Sequence[Annotated[float, Field(gt=0)]], Field(min_length=1)]


@dataclass(frozen=True)
class Plot:
    """A figure of a finding's rows: `y` over `x`, one line (or group of bars) for each `group`.

    `y` names a column that has `y`_low and `y`_high beside it where there is an interval. `level` draws a level
    line. `panel` names a column with a panel of its own for each value. `top`
    is where the axis ends, whatever lies above.
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
    """What a study found: rows of numbers, how to draw them (or `drawn` instead), and what was seen in words."""

    rows: list[dict[str, Any]]
    plot: Plot
    sentences: list[str] = field(default_factory=list)
    drawn: list[dict[str, Any]] | None = None


class Study(Protocol):
    name: str

    def run(self, scenario: Scenario, progress: Progress) -> Finding: ...


def spread(name: str, found: Estimate) -> dict[str, float]:
    """Columns of an estimate: its mean and the ends of its interval."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def melted(
    rows: list[dict[str, Any]], name: str, group: str, kinds: dict[str, str]
) -> list[dict[str, Any]]:
    """Rows for a figure with a bar for each kind: the estimate in column kinds[label] of every row, as `name`, labelled in `group`."""
    return [
        {"auction": row["auction"], group: label}
        | {f"{name}{end}": row[f"{key}{end}"] for end in ("", "_low", "_high")}
        for row in rows
        for label, key in kinds.items()
    ]


def markets(
    scenario: Scenario, profiles: int, seed: int | None = None
) -> tuple[Profiles, NDArray[np.float64]]:
    """Profiles and budgets (K,) of a scenario, at budget factors drawn from the scenario's range (or its amounts)."""
    drawn = scenario.seed if seed is None else seed
    truth, uniform = draw_markets(scenario, profiles, None, drawn)
    share = (uniform - 0.1) / 1.9
    low, high = scenario.budget.factor or scenario.budget.amount or (0.1, 2.0)
    money = low + (high - low) * share
    return truth, money * truth.total_value() if scenario.budget.factor is not None else money
