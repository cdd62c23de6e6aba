"""The round timeline: which phase of a round takes how long, and when something came late or not at all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from flmarket_sim.eventlog import sql
from flmarket_sim.report.html.parts import Chart, Series, evenly, sampled

LANES = 40
PHASES = ("bidding", "deciding", "computing", "settling")

# the broker's own messages are the borders between phases
_BORDERS = "SELECT buyer, round, min(time) AS time FROM {kind} GROUP BY ALL"
_TROUBLE = """
SELECT buyer, round, time, sender, message || ' came late' AS what FROM late
UNION ALL SELECT buyer, round, time, sender, 'no ' || stage || ': ' || reason AS what FROM dropout ORDER BY time
"""


def chart(run: Path, rounds: list[dict[str, Any]]) -> Chart:
    """Rounds one below the other, in seconds since each began."""
    shown = evenly(rounds, LANES)
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
    lanes = {(row["buyer"], row["round"]): _lane(row, several) for row in shown}
    series: dict[str, tuple[list[list[Any]], list[str]]] = {phase: ([], []) for phase in PHASES}
    for row in shown:
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
    began = {(row["buyer"], row["round"]): row["started"] for row in shown}
    for row in evenly(
        [row for row in sql(run, _TROUBLE).to_pylist() if (row["buyer"], row["round"]) in lanes],
        1_000,
    ):
        key = (row["buyer"], row["round"])
        after = row["time"] - began[key]
        trouble[0].append([after, after, lanes[key]])
        trouble[1].append(f"owner {row['sender']}: {row['what']}")
    found = [Series(name, points, labels) for name, (points, labels) in series.items() if points]
    if trouble[0]:
        found.append(Series("late or missing", *trouble))
    note = sampled(len(shown), len(rounds), "rounds")
    return Chart(
        "timeline",
        "The rounds in time",
        "timeline",
        "simulated seconds since the round began",
        "",
        found,
        note,
    )


def _lane(row: dict[str, Any], several: bool) -> str:
    return f"{row['buyer']} {row['round'] + 1}" if several else f"round {row['round'] + 1}"
