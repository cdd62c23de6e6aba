"""First-best in the paper's markets: the gap to its proved lower bound, the former search, times.

A second table has the gap in the same markets when they count other errors than the paper's: whole
vectors under Laplace noise (V = kappa / e^2), and a V that is no power of e. `python -m
benchmarks.first_best errors` prints this table alone.

Times are processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flmarket_sim as fm
from benchmarks.former_first_best import first_best as former_search
from flmarket_sim.aggregation.market_error import MarketError, error_of_kappa
from flmarket_sim.owners import valuation

SCENARIOS = Path(__file__).parents[1] / "scenarios"
MARKETS = 200
SEED = 2  # seed 1 was used to choose the settings of the search
KINDS = (("paper/iid", 0.0), ("paper/noniid", 0.0), ("paper/iid", 0.3), ("paper/iid", 1.0))
FACTORS = (0.1, 0.3, 0.5, 1.0)
LAPLACE = 4920.0  # kappa of 615 coordinates: 8 for each


def steeper(privacy_loss: Any) -> Any:
    """A variance that falls like 1 / e^2 at small losses, and faster at large ones."""
    with np.errstate(divide="ignore"):  # infinite at 0
        return LAPLACE / np.expm1(privacy_loss) ** 2


ERRORS = {
    "kappa 8": error_of_kappa(8.0),
    "kappa 4920": error_of_kappa(LAPLACE),
    "4920 / (exp(e) - 1)^2": MarketError("vector", steeper),
}


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its seconds of processor time."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def owners(scenario: str, step_share: float) -> fm.Profiles:
    """Markets of a scenario in which some owners, drawn at random, are step owners."""
    truth = fm.draw_profiles(fm.load_scenario(SCENARIOS / f"{scenario}.toml"), MARKETS, seed=SEED)
    step = np.random.default_rng(SEED).random(truth.shape) < step_share
    family = np.where(step, valuation.STEP, truth.family)
    return fm.Profiles(family, truth.rate, truth.privacy_budget, truth.data_size)


def row(scenario: str, step_share: float, factor: float) -> str:
    """One line of the table."""
    truth = owners(scenario, step_share)
    money = factor * truth.total_value()
    found, seconds = timed(lambda: fm.auctions.first_best(truth, money))
    proved, with_bound = timed(lambda: fm.auctions.first_best(truth, money, bound=True))
    former, former_seconds = timed(lambda: former_search(truth, money))
    gap = 100.0 * proved.gap
    excess = 100.0 * (former / found.error_bound - 1.0)
    return (
        f"| {scenario} | {100 * step_share:g} | {factor:g} | {found.error_bound.mean():.3f} "
        f"| {gap.mean():.2f} | {gap.max():.2f} | {excess.mean():.2f} "
        f"| {excess.max():.1f} | {excess.min():.2f} | {former_seconds:.2f} "
        f"| {seconds:.2f} | {with_bound - seconds:.2f} |"
    )


def error_row(error: str, scenario: str, factor: float) -> str:
    """One line of the table of errors."""
    truth = owners(scenario, 0.0)
    money, counted = factor * truth.total_value(), ERRORS[error]
    found, seconds = timed(lambda: fm.auctions.first_best(truth, money, error=counted))
    proved, with_bound = timed(
        lambda: fm.auctions.first_best(truth, money, bound=True, error=counted)
    )
    gap = 100.0 * proved.gap
    return (
        f"| {error} | {scenario} | {factor:g} | {found.error_bound.mean():.4g} | {gap.mean():.2f} "
        f"| {gap.max():.2f} | {seconds:.2f} | {with_bound - seconds:.2f} |"
    )


def errors() -> None:
    rows = [
        error_row(error, scenario, factor)
        for error in ERRORS
        for scenario in ("paper/iid", "paper/noniid")
        for factor in FACTORS[:-1]
    ]
    print(
        f"""## First-best under other errors, {MARKETS} markets a line

| error | market | factor | error | gap %, mean | gap %, max | seconds | bound |
|---|---|---|---|---|---|---|---|
"""
        + "\n".join(rows)
    )


def main() -> None:
    if sys.argv[1:] == ["errors"]:
        errors()
        return
    rows = [row(*market, factor) for market in KINDS for factor in FACTORS]
    print(
        f"""## First-best and its proved lower bound, {MARKETS} markets a line

| market | step owners, % | factor | error | gap %, mean | gap %, max \
| former search above, %, mean | max | min | seconds, former | now | bound |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
        + "\n".join(rows)
    )
    print()
    errors()


if __name__ == "__main__":
    main()
