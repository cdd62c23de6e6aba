"""The accuracy of the buyers' models on a page, beside what it is to be compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flmarket_sim.report.html.parts import Chart, Series, evenly, short

Row = dict[str, Any]
Yardsticks = Mapping[str, Mapping[str, Any]]
POINTS = 2_000  # of one line
MEASURES = {"accuracy": "accuracy", "balanced accuracy": "balanced_accuracy"}
REFERENCES = {"constant guess": "constant_guess", "without noise": "noiseless_accuracy"}
NOTE = (
    "The balanced accuracy is the mean recall of the classes. The constant guess is always the "
    "commonest class of the training records. Without noise, one owner with everybody's records "
    "sends exact updates in as many rounds."
)


def chart(rounds: list[Row], models: dict[str, str], yardsticks: Yardsticks) -> Chart:
    """Accuracies by round, and the constant guess and the model without noise as flat lines."""
    buyers = list(dict.fromkeys(row["buyer"] for row in rounds))
    series = []
    for name, column in MEASURES.items():
        for buyer in buyers:
            own = [r for r in rounds if r["buyer"] == buyer and r.get(column) is not None]
            shown = evenly(own, POINTS)
            if shown:
                points = [[row["round"] + 1, row[column]] for row in shown]
                labels = [f"round {row['round'] + 1}" for row in shown]
                whose = name if len(buyers) == 1 else f"{buyer}: {name}"
                series.append(Series(whose, points, labels))
    ends = sorted({row["round"] + 1 for row in rounds if row["accuracy"] is not None})
    for name, key in REFERENCES.items() if ends else ():
        levels: dict[float, list[str]] = {}
        for buyer in buyers:
            level = yardsticks.get(buyer, {}).get(key)
            if level is not None:
                levels.setdefault(level, []).append(buyer)
        for level, whom in levels.items():
            whose = name if len(levels) == 1 else f"{', '.join(whom)}: {name}"
            points = [[number, level] for number in dict.fromkeys((ends[0], ends[-1]))]
            series.append(Series(whose, points, reference=True))
    label = f"test accuracy of {', '.join(dict.fromkeys(models.values()))}"
    return Chart("accuracy", "Accuracy", "line", "round", label, series, NOTE, percent=True)


def cards(rounds: list[Row], yardsticks: Yardsticks) -> list[tuple[str, str]]:
    """What stands beside the last accuracy; for several buyers their mean."""
    last = {row["buyer"]: row for row in rounds if row["accuracy"] is not None}
    facts = {"balanced accuracy": [row.get("balanced_accuracy") for row in last.values()]} | {
        name: [yardsticks.get(buyer, {}).get(key) for buyer in last]
        for name, key in REFERENCES.items()
    }
    known = {name: [x for x in values if x is not None] for name, values in facts.items()}
    return [
        (name, short(sum(values) / len(values), percent=True))
        for name, values in known.items()
        if values
    ]
