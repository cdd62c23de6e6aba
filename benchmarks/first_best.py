"""First-best in the paper's markets: the gap to its proved lower bound, the former search, times.

Times are processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flmarket_sim as fm
from benchmarks.former_first_best import first_best as former_search

SCENARIOS = Path(__file__).parents[1] / "scenarios"
MARKETS = 200
FACTORS = (0.1, 0.3, 0.5, 1.0)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its seconds of processor time."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def row(scenario: str, factor: float) -> str:
    """One line of the table."""
    truth = fm.draw_profiles(fm.load_scenario(SCENARIOS / f"{scenario}.toml"), MARKETS, seed=1)
    money = factor * truth.total_value()
    found, seconds = timed(lambda: fm.auctions.first_best(truth, money))
    proved, with_bound = timed(lambda: fm.auctions.first_best(truth, money, bound=True))
    former, former_seconds = timed(lambda: former_search(truth, money))
    gap = 100.0 * proved.gap
    excess = 100.0 * (former / found.error_bound - 1.0)
    return (
        f"| {scenario} | {factor:g} | {found.error_bound.mean():.3f} | {gap.mean():.2f} "
        f"| {gap.max():.2f} | {excess.mean():.2f} | {excess.max():.1f} | {excess.min():.2f} "
        f"| {former_seconds:.2f} | {seconds:.2f} | {with_bound - seconds:.2f} |"
    )


def main() -> None:
    rows = [row(name, factor) for name in ("paper/iid", "paper/noniid") for factor in FACTORS]
    print(
        f"""## First-best and its proved lower bound, {MARKETS} markets a line

| market | factor | error | gap %, mean | gap %, max | former search above, %, mean | max | min \
| seconds, former | now | bound |
|---|---|---|---|---|---|---|---|---|---|---|
"""
        + "\n".join(rows)
    )


if __name__ == "__main__":
    main()
