"""The paper's claims about regret and IR violation, judged by the rows of two studies.

`guarantees` measures the paper's table, `levels` its figure on M (paper, RQ3 and RQ4).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from flmarket_sim.paper.paper_market import PUBLISHED
from flmarket_sim.paper.verdicts import (
    APART,
    AUTHORS,
    BEYOND,
    DM,
    NO_RIVAL,
    RIVALS,
    Comparison,
    NotAsked,
    Row,
    Ruling,
    by_market,
    cells,
    is_below,
    joined,
    measured,
    networks,
    outcome_of,
    signs_of,
)

NEAR, IR_NEAR = 0.15, 0.10  # how near a number of the table has to be
NO_FILES = "published weights: --authors DIR names the folder of the authors' files"
BY_LEVELS = {
    "as_published": "regret as published",
    "axis_mended": "with its axis mended",
    "corrected": "by the corrected metric",
    "probed": "by the probe",
    "ir_as_published": "IR violation as published",
}
STILL_BUYS = 0.5  # of what the smallest M buys


def more_levels_help(rows: list[Row]) -> Iterator[Ruling]:
    """Compares the smallest M with the largest M that still buys.

    An auction that buys nothing gives no gain to a misreport, and proves nothing.
    """
    for networks_of in dict.fromkeys(row["networks"] for row in rows):
        changes: list[str] = []
        comparisons: list[Comparison] = []
        for market, in_market in by_market(rows).items():
            here = [row for row in in_market if row["networks"] == networks_of]
            if not here:
                continue
            first = here[0]
            least = STILL_BUYS * first["privacy_bought"]
            idle = [row for row in here if row["privacy_bought"] < least]
            last = [row for row in here if row not in idle][-1]
            comparisons += [is_below(last, first, key) for key in BY_LEVELS]
            parts = [
                f"{label} {first[key]:.3g} to {last[key]:.3g}" for key, label in BY_LEVELS.items()
            ]
            parts.append(
                f"privacy bought {first['privacy_bought']:.1%} to {last['privacy_bought']:.1%}"
            )
            ends = f"M = {first['levels']} to {last['levels']}"
            changes.append(f"{market}, {ends}: {', '.join(parts)}")
            if idle:
                shares = ", ".join(
                    f"{row['privacy_bought']:.1%} at M = {row['levels']}" for row in idle
                )
                changes.append(f"left out, since they buy less than half of that: {shares}")
        yield networks_of, outcome_of(signs_of(comparisons)), "; ".join(changes) + APART


def more_levels_help_as_published(rows: list[Row]) -> Iterator[Ruling]:
    """From the smallest M to the largest, and step by step, by the authors' procedure alone."""
    published = [row for row in rows if row["networks"] == AUTHORS]
    if not published:
        raise NotAsked(NO_FILES)
    places = [
        (market, here, key, label)
        for market, here in by_market(published).items()
        for key, label in (("as_published", "regret"), ("ir_as_published", "IR violation"))
    ]
    signs = signs_of([is_below(here[-1], here[0], key) for _, here, key, _ in places])
    comparisons = [
        is_below(other, one, key) for _, here, key, _ in places for one, other in pairwise(here)
    ]
    falling = iter(signs_of(comparisons))
    steps: list[str] = []
    for market, here, key, label in places:
        numbers = ", ".join(
            f"{row[key]:.3f} [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}] "
            f"(M = {row['levels']})"
            for row in here
        )
        falls = [
            f"{one['levels']} to {other['levels']}"
            for one, other in pairwise(here)
            if next(falling) > 0
        ]
        told = f"it falls from M = {', '.join(falls)}" if falls else "no step is a fall"
        steps.append(f"{market}, {label} {numbers}: {told}")
    yield AUTHORS, outcome_of(signs), "; ".join(steps) + APART


def dm_is_most_truthful(rows: list[Row]) -> Iterator[Ruling]:
    metrics = {
        "as_published": "by the authors' procedure",
        "axis_mended": "with its axis mended",
        "probe": "by the probe",
    }
    for prefix, owner in networks(rows):
        comparisons, numbers = [], []
        for key, label in metrics.items():
            for market, in_market in by_market(measured(rows, key)).items():
                places = cells(in_market, "auction", "rule")
                dm = places.get((prefix + DM, "opt-aggr"))
                rivals = [
                    places[prefix + name, "any"]
                    for name in RIVALS
                    if (prefix + name, "any") in places
                ]
                if dm is None or not rivals:
                    continue
                best = min(rivals, key=lambda row: float(row[key]))
                comparisons.append(is_below(dm, best, key))
                numbers.append(
                    f"{dm[key]:.3f} against {best[key]:.3f} of {best['auction']} "
                    f"({market}, {label})"
                )
        evidence = joined(numbers, NO_RIVAL)
        yield owner, outcome_of(signs_of(comparisons)), evidence + APART


def published_regret_is_what_it_is(rows: list[Row]) -> Iterator[Ruling]:
    """By the authors' procedure, within `NEAR` of each number of the table."""
    numbers = [row for row in rows if _published(row) and row.get("paper_regret") is not None]
    if not numbers:
        raise NotAsked(NO_FILES)
    signs = [_agrees(row, "as_published", row["paper_regret"], NEAR) for row in numbers]
    compared = "; ".join(
        f"{_place(row)} {row['paper_regret']:g} there, {_estimate(row, 'as_published')} here"
        for row in numbers
    )
    evidence = f"{signs.count(1)} of {len(signs)} numbers agree within {NEAR:.0%}: {compared}"
    yield AUTHORS, outcome_of(signs), evidence


def published_ir_is_what_it_is(rows: list[Row]) -> Iterator[Ruling]:
    numbers = [row for row in rows if _published(row) and row.get("paper_ir") is not None]
    if not numbers:
        raise NotAsked(NO_FILES)
    signs, compared = [], []
    for row in numbers:
        signs.append(_agrees(row, "ir_as_published", row["paper_ir"], IR_NEAR))
        text = f"{_place(row)} {row['paper_ir']:g} there, {_estimate(row, 'ir_as_published')} here"
        if measured([row], "ir_tested_on"):
            text += f", {_estimate(row, 'ir_tested_on')} with more uneven sizes"
        compared.append(text)
    evidence = (
        f"{signs.count(1)} of {len(signs)} numbers agree within {IR_NEAR:.0%}: "
        f"{'; '.join(compared)}"
    )
    yield AUTHORS, outcome_of(signs), evidence


def published_number_is_the_regret(rows: list[Row]) -> Iterator[Ruling]:
    """Regret is a maximum over misreports: a search that finds more refutes a number, and one that
    finds less proves nothing."""
    compared, comparisons = [], []
    for row in rows:
        if _published(row) and DM in row["auction"] and row.get("paper_regret") is not None:
            number = dict.fromkeys(("probe", "probe_low", "probe_high"), row["paper_regret"])
            comparisons.append(Comparison(1.0, is_below(number, row, "probe").supports))
            compared.append(
                f"{_place(row)} {row['paper_regret']:g} in the paper, "
                f"{_estimate(row, 'as_published')} by the authors' procedure, "
                f"{_estimate(row, 'axis_mended')} with its axis mended and nothing else changed, "
                f"{_estimate(row, 'corrected')} by the corrected metric, {_estimate(row, 'probe')} "
                f"by the probe (median {row['probe_median']:.3f}); {row['gaining']:.0%} of owners "
                "can gain more than 1 %"
            )
    if not comparisons:
        raise NotAsked(NO_FILES)
    yield AUTHORS, outcome_of(signs_of(comparisons)), "; ".join(compared)


def luck_is_most_of_it(rows: list[Row]) -> Iterator[Ruling]:
    regrets = [
        f"{row['auction']} {row['as_published']:.3f} with lies, {row['luck']:.3f} without any "
        f"({row['market']})"
        for row in measured(rows, "luck")
        if row["auction"].removeprefix(PUBLISHED) in RIVALS
    ]
    yield "", BEYOND, joined(regrets, "lottery")


def _published(row: Row) -> bool:
    return str(row["auction"]).startswith(PUBLISHED)


def _place(row: Row) -> str:
    auction = row["auction"].removeprefix(PUBLISHED)
    return f"{auction} ({row['market']}{'' if row['rule'] == 'any' else ', ' + row['rule']})"


def _estimate(row: Row, key: str) -> str:
    return f"{row[key]:.3f} [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]"


def _agrees(row: Row, key: str, number: float, share: float) -> int:
    """1 if the estimate is within a share of a number, else -1."""
    return 1 if abs(row[key] - number) <= share * number else -1
