"""What the accuracies of a study are to be compared with: the constant guess, and the model without
noise, as columns of its rows and as lines of its figure."""

from __future__ import annotations

import math

from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.studies.study import Plot, Row

CONSTANT = "always the commonest class"  # the constant guess as a row among pipelines
CONSTANT_GUESS, WITHOUT_NOISE = "constant guess", "without noise, at best"
NOISELESS = {  # what is compared, and the column that it is compared with
    "accuracy": "noiseless_accuracy",
    "balanced_accuracy": "noiseless_balanced_accuracy",
}
GUESSES = {"accuracy": "constant_guess", "balanced_accuracy": "constant_guess_balanced"}


def references(scenario: Scenario, data: Dataset | None) -> Row:
    """The numbers of the first buyer of a market, by column."""
    from flmarket_sim.market.simulation import accuracy_yardsticks  # figures need the names only

    return dict(accuracy_yardsticks(scenario, data)[scenario.resolved_buyers()[0].name])


def reference_lines(drawn: list[Row], plot: Plot, lines: dict[str, str]) -> list[Row]:
    """Flat lines for a figure: the highest estimate of a column of its rows, in every panel.

    `lines` has the column of each line by its name. A line without a known estimate is left out.
    """
    added = []
    for panel in dict.fromkeys(row[plot.panel] for row in drawn) if plot.panel else (None,):
        own = [row for row in drawn if plot.panel is None or row[plot.panel] == panel]
        for name, column in lines.items():
            known = [row for row in own if _is_known(row.get(column))]
            if not known:
                continue
            best = max(known, key=lambda row: float(row[column]))
            ends = {f"{plot.y}{end}": best[f"{column}{end}"] for end in ("", "_low", "_high")}
            place = {} if plot.panel is None else {plot.panel: panel}
            for x in sorted({row[plot.x] for row in own}):
                added.append(place | {plot.group: name, plot.x: x} | ends)
    return added


def compared_with(rows: list[Row], measure: str = "accuracy") -> str:
    """The end of a sentence about accuracies: what they are to be compared with; may be empty."""
    parts = []
    for words, columns in (("the constant guess has", GUESSES), ("without noise it is", NOISELESS)):
        column = columns[measure]
        levels = sorted(row[column] for row in rows if _is_known(row.get(column)))
        if levels:
            most = "" if f"{levels[0]:.3f}" == f"{levels[-1]:.3f}" else f" to {levels[-1]:.3f}"
            parts.append(f"{words} {levels[0]:.3f}{most}")
    return f" ({'; '.join(parts)})" if parts else ""


def _is_known(level: float | None) -> bool:
    return level is not None and not math.isnan(level)
