"""Best-response dynamics: owners answer each other's reports in turn until they come to rest.

A market rests when no owner gains more than a little. This is an approximate equilibrium against
the search, not a proof of one. All markets are followed at once, and leave when they rest or a
cycle is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Bools, Floats, Misreports
from flmarket_sim.strategy.payoff import Payoff, require_one_outcome
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import Effort

ENDINGS = ("rest", "cycle", "unsettled")
REST, CYCLE, UNSETTLED = range(3)


@dataclass(frozen=True)
class RestingMarkets:
    """How K markets ended.

    ending   (K,) a position in ENDINGS
    sweeps   (K,) through all owners
    reports  the last reports
    moved    (K, n) owners whose last report is not the truth
    """

    ending: NDArray[np.int8]
    sweeps: NDArray[np.int64]
    reports: BidBatch
    moved: Bools


def best_response_dynamics(
    auction: Any,
    truth: Profiles,
    budget: Floats,
    *,
    effort: str | Effort = "quick",
    seed: int = 0,
    threshold: float = 0.01,
    max_sweeps: int = 30,
    levels: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> RestingMarkets:
    """Iterated best response from the truth.

    An owner moves if her gain exceeds `threshold` times the true value of all that she has. The
    search has the same seed in every sweep, so the same situation gets the same answer, and a cycle
    returns to the same reports.
    """
    bids = reports = truth.bids(levels)
    require_one_outcome(auction, bids, budget)
    markets, n = truth.shape
    small = threshold * truth.value(truth.privacy_budget)
    ending = np.full(markets, UNSETTLED, np.int8)
    sweeps = np.full(markets, max_sweeps, np.int64)
    seen: list[set[bytes]] = [{_mark(reports.take([k]))} for k in range(markets)]
    active = np.arange(markets)
    for sweep in range(1, max_sweeps + 1):
        moves = np.zeros(markets, bool)
        for i in range(n):
            types, others = truth.take(active), reports.take(active)
            owner = np.full(len(active), i)
            now = Misreports.of(others, owner)
            best = best_reports(
                auction, types, others, budget[active], owner,
                effort=effort, seed=seed * n + i, start=now,
            )  # fmt: skip
            current = Payoff(auction, types, others, budget[active], owner)(now.at(None))[0]
            rows = np.flatnonzero(best.utility > current + small[active, i])
            reports = best.misreports.at(rows).within(reports, owner[rows], active[rows])
            moves[active[rows]] = True
        sweeps[active] = sweep
        ending[active[~moves[active]]] = REST
        active = active[moves[active]]
        for k in active:
            mark = _mark(reports.take([k]))
            if mark in seen[k]:
                ending[k] = CYCLE
            seen[k].add(mark)
        active = active[ending[active] != CYCLE]
        if progress is not None:
            progress(markets - len(active), markets)
        if not len(active):
            break
    moved = (reports.values != bids.values).any(axis=2)
    moved |= reports.privacy_budget != bids.privacy_budget
    moved |= reports.data_size != bids.data_size
    return RestingMarkets(ending, sweeps, reports, moved)


def _mark(market: BidBatch) -> bytes:
    """The reports of a market to four digits: what tells that a cycle has closed."""
    parts = (market.values, market.privacy_budget, market.data_size)
    numbers = np.concatenate([part.ravel() for part in parts])
    scale = 10.0 ** np.floor(np.log10(np.maximum(np.abs(numbers), 1e-12)))
    digits = np.round(numbers / scale, 3).astype(np.float32).tobytes()
    return bytes(digits + scale.astype(np.float32).tobytes())
