"""The tables in undetectable.md: `python -m docs.undetectable` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from flmarket_sim.checks.honest_payment import (
    stake_against_noise,
    stake_of_any_perturbation,
    stake_of_caps,
)
from flmarket_sim.checks.shifted_laplace import best_power, curves, distance
from flmarket_sim.checks.shifted_laplace import one_coordinate_distance as one_distance
from flmarket_sim.checks.shifted_laplace import one_coordinate_power as one_power
from flmarket_sim.checks.undetectable import (
    cap_chances,
    largest_distance,
    more_laplace_noise_power,
    most_power,
    two_events_power,
    weaker_cap_chance,
)

PAGE = Path(__file__).with_name("undetectable.md")
LOSSES, LEVEL, POINTS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0), 0.05, 2**18
ALIKE = 64  # coordinates of the gradient whose coordinates are all alike

FAMILIES = (
    f" priv-unit, D = 10 | priv-unit, D = 650 | laplace, one coordinate | laplace, {ALIKE} alike |"
)


def _table(head: str, rows: list[list[str]]) -> str:
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def distances() -> str:
    """Total variation between honest messages and nothing but noise."""
    rows = []
    for loss in LOSSES:
        caps = [np.subtract(*cap_chances(loss, dimension)) for dimension in (10, 650)]
        alike = distance(curves(np.full(ALIKE, loss / 2 / ALIKE), POINTS))
        cells = [largest_distance(loss), *caps, one_distance(loss / 2), float(alike.most)]
        rows.append([f"{loss:g}", *(f"{cell:.4f}" for cell in cells)])
    return _table(f"| e | any, tanh(e/2) |{FAMILIES}", rows)


def powers() -> str:
    """The power of the best test at a level of 5 %, in percent."""
    rows = []
    for loss in LOSSES:
        caps = [two_events_power(LEVEL, *cap_chances(loss, dimension)) for dimension in (10, 650)]
        alike = best_power(curves(np.full(ALIKE, loss / 2 / ALIKE), POINTS), LEVEL).most[0]
        cells = [most_power(LEVEL, loss), *caps, one_power(LEVEL, loss / 2), alike]
        rows.append([f"{loss:g}", *(f"{100 * float(cell):.1f}" for cell in cells)])
    return _table(f"| e | any test |{FAMILIES}", rows)


def more_noise() -> str:
    """The power of the best test at 5 % against half of the privacy loss that was sold."""
    rows = []
    for loss in LOSSES:
        sold = [
            two_events_power(
                LEVEL, cap_chances(loss, dimension)[0], weaker_cap_chance(loss, loss / 2, dimension)
            )
            for dimension in (10, 650)
        ]
        open_ = [more_laplace_noise_power(LEVEL, 2.0, dimension) for dimension in (1, 10, 650)]
        rows.append([f"{loss:g}", *(f"{100 * float(cell):.1f}" for cell in [*sold, *open_])])
    head = "| e sold | priv-unit, same cap, D = 10 | priv-unit, same cap, D = 650 |"
    head += " laplace, D = 1 | laplace, D = 10 | laplace, D = 650 |"
    return _table(head, rows)


def stakes() -> str:
    """The least stake over the cost of what was sold."""
    rows = []
    for loss in LOSSES:
        alike = distance(curves(np.full(ALIKE, loss / 2 / ALIKE), POINTS))
        caps = [np.subtract(*cap_chances(loss, dimension)) for dimension in (10, 650)]
        cells = [
            stake_of_any_perturbation(loss),
            *(stake_against_noise(float(cap)) for cap in caps),
            stake_of_caps(loss, 650),
            stake_against_noise(one_distance(loss / 2)),
            stake_against_noise(float(alike.most)),
        ]
        rows.append([f"{loss:g}", *(f"{cell:.2f}" for cell in cells)])
    head = "| e | any, coth(e/2) | priv-unit, D = 10 | priv-unit, D = 650 |"
    head += f" priv-unit, D = 650, any e sent | laplace, one coordinate | laplace, {ALIKE} alike |"
    return _table(head, rows)


TABLES = {"distances": distances, "powers": powers, "more noise": more_noise, "stakes": stakes}
BETWEEN = re.compile(
    r"(<!-- made by: python -m docs\.undetectable, ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL
)


def page(text: str) -> str:
    """The page with its tables as they are now."""
    return BETWEEN.sub(lambda mark: f"{mark[1]}{TABLES[mark[2]]()}\n{mark[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
