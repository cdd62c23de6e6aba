"""The round timeline: how long each phase takes, and which messages were late or missing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from flmarket_sim.eventlog import sql
from flmarket_sim.report.html.parts import Chart, Series, evenly, sampled

LANES = 40
PHASES = ("bidding", "deciding", "computing", "settling")

# The messages of the broker are the borders between phases.
_BORDERS = "SELECT buyer, round, min(time) AS time FROM {kind} GROUP BY ALL"
_TROUBLE = """
SELECT buyer, round, time, sender, message || ' came late' AS what FROM late
UNION ALL
SELECT buyer, round, time, sender, 'no ' || stage || ': ' || reason AS what FROM dropout
ORDER BY time
"""


def chart(run: Path, rounds: list[dict[str, Any]]) -> Chart:
    """A lane for each round, in seconds since the round began."""
    sample = evenly(rounds, LANES)
    several = len({row["buyer"] for row in rounds}) > 1
    borders: dict[tuple[str, int], dict[str, float]] = {}
    for kind, phase in (
        ("offer", "deciding"),
        ("allocation", "deciding"),
        ("model", "computing"),
        ("delivery", "settling"),
    ):
        for row in sql(run, _BORDERS.format(kind=kind)).to_pylist():
            of_round = borders.setdefault((row["buyer"], row["round"]), {})
            of_round[phase] = min(row["time"], of_round.get(phase, row["time"]))
    lanes = {(row["buyer"], row["round"]): _lane(row, several) for row in sample}
    series: dict[str, tuple[list[list[Any]], list[str]]] = {phase: ([], []) for phase in PHASES}
    for row in sample:
        key = (row["buyer"], row["round"])
        times = [
            row["started"],
            *(borders.get(key, {}).get(phase) for phase in PHASES[1:]),
            row["ended"],
        ]
        known = [(place, time) for place, time in enumerate(times) if time is not None]
        for (place, start), (_, end) in pairwise(known):
            points, labels = series[PHASES[place]]
            points.append([start - row["started"], end - row["started"], lanes[key]])
            labels.append(f"{end - start:.4g} s, from {start:,.6g} s on the clock")
    trouble: tuple[list[list[Any]], list[str]] = ([], [])
    began = {(row["buyer"], row["round"]): row["started"] for row in sample}
    for row in evenly(
        [row for row in sql(run, _TROUBLE).to_pylist() if (row["buyer"], row["round"]) in lanes],
        1_000,
    ):
        key = (row["buyer"], row["round"])
        after = row["time"] - began[key]
        trouble[0].append([after, after, lanes[key]])
        trouble[1].append(f"owner {row['sender']}: {row['what']}")
    phases = [Series(name, points, labels) for name, (points, labels) in series.items() if points]
    if trouble[0]:
        phases.append(Series("late or missing", *trouble))
    note = sampled(len(sample), len(rounds), "rounds")
    return Chart(
        "timeline",
        "The rounds in time",
        "timeline",
        "seconds since the round began",
        "",
        phases,
        note,
    )


def _lane(row: dict[str, Any], several: bool) -> str:
    return f"{row['buyer']} {row['round'] + 1}" if several else f"round {row['round'] + 1}"
