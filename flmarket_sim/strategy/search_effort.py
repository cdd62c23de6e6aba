"""The effort of the search for misreports: the sizes of its stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError


@dataclass(frozen=True)
class Effort:
    """Reports tried for each owner, stage by stage.

    rates, budgets, sizes   the grid over the own family: factors of the true rate, privacy budget,
                            data size
    other_*                 the coarser grid over all families
    moved_budgets           smaller privacy budgets of owners of no built-in family
    heights                 values on either side of a jump at each level, as factors of the own
                            full value
    random                  the number of random misreports
    starts, rounds, tries   refinement: the number of starts, rounds from each, and random steps in
                            a round
    polish                  rounds of small steps along one part of the report at a time, from the
                            best
    ascents, steps          gradient ascent: starts and steps, for auctions that are
                            `Differentiable`
    """

    rates: tuple[float, ...]
    budgets: tuple[float, ...]
    sizes: tuple[float, ...]
    other_rates: tuple[float, ...]
    other_budgets: tuple[float, ...]
    other_sizes: tuple[float, ...]
    moved_budgets: int
    heights: tuple[float, ...]
    random: int
    starts: int
    rounds: int
    tries: int
    polish: int
    ascents: int
    steps: int


def _factors(low: float, high: float, count: int) -> tuple[float, ...]:
    return tuple(float(factor) for factor in np.geomspace(low, high, count))


def _shares(low: float, count: int) -> tuple[float, ...]:
    return tuple(float(share) for share in np.linspace(1.0, low, count))


EFFORTS = {
    "quick": Effort(
        rates=(0.1, 0.5, 0.8, 1.0, 1.3, 2.0, 8.0),
        budgets=(1.0, 0.7, 0.4, 0.15), sizes=(1.0, 0.4),
        other_rates=(0.5, 1.5), other_budgets=(1.0, 0.5), other_sizes=(1.0,),
        moved_budgets=19, heights=(0.0, 1.0, 100.0),
        random=32, starts=2, rounds=4, tries=8, polish=3, ascents=1, steps=20,
    ),
    "standard": Effort(
        rates=(1e-3, 0.1, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.5, 10.0, 1e4),
        budgets=_shares(0.1, 7), sizes=(1.0, 0.6, 0.2),
        other_rates=(0.2, 0.6, 1.0, 1.7, 4.0), other_budgets=(1.0, 0.6, 0.3),
        other_sizes=(1.0, 0.4), moved_budgets=61, heights=(0.0, 0.5, 1.0, 2.0, 1e3),
        random=160, starts=3, rounds=8, tries=8, polish=14, ascents=2, steps=40,
    ),
    "exhaustive": Effort(
        rates=(1e-3, *_factors(0.05, 20.0, 29), 1e4),
        budgets=_shares(0.05, 16), sizes=(1.0, 0.8, 0.6, 0.4, 0.2, 0.05),
        other_rates=_factors(0.1, 10.0, 9), other_budgets=_shares(0.2, 6),
        other_sizes=(1.0, 0.6, 0.2), moved_budgets=181,
        heights=(0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 3.0, 1e3),
        random=1600, starts=4, rounds=24, tries=12, polish=40, ascents=3, steps=120,
    ),
}  # fmt: skip


def effort_of(effort: str | Effort) -> Effort:
    if isinstance(effort, Effort):
        return effort
    if effort not in EFFORTS:
        raise InputError(f"there is no effort {effort!r}; choose one of {', '.join(EFFORTS)}")
    return EFFORTS[effort]


def options_of(effort: str | Effort) -> dict[str, Any]:
    """The effort as plain data, for logs."""
    return {"effort": effort} if isinstance(effort, str) else {"effort": "own", **vars(effort)}
