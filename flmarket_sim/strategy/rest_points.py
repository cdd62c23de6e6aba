"""Where lying comes to rest: owners answer each other's reports in turn until nobody gains more
than a little.

A point of rest is an approximate equilibrium against the search, not a proof of one. Markets are
followed all at once and leave as they rest or as a cycle is found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.play import draws_numbers
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Bools, Floats, Misreports
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import Effort

ENDINGS = ("rest", "cycle", "unsettled")
REST, CYCLE, UNSETTLED = range(3)


@dataclass(frozen=True)
class Rest:
    """How K markets ended: `ending` (K,), a position in ENDINGS; `sweeps` (K,) through all owners;
    the last reports; `moved` (K, n) whether an owner ended with another report than the truth."""

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
) -> Rest:
    """Iterated best response from the truth. An owner moves if that gains her more than `threshold`
    of the true value of all she has.

    The search has the same seed in every sweep, so the same situation gets the same answer and a
    cycle comes back to itself.
    """
    bids = truth.bids(levels)
    if draws_numbers(auction, bids, budget):
        raise InputError(
            f"auction {auction.name!r} draws numbers: best-response dynamics need one outcome for one set of reports"
        )
    values, eb, size = bids.values.copy(), bids.privacy_budget.copy(), bids.data_size.copy()
    markets, n = truth.shape
    small = threshold * truth.value(truth.privacy_budget)
    ending = np.full(markets, UNSETTLED, np.int8)
    sweeps = np.full(markets, max_sweeps, np.int64)
    seen: list[set[bytes]] = [{_mark(values[k], eb[k], size[k])} for k in range(markets)]
    active = np.arange(markets)
    for sweep in range(1, max_sweeps + 1):
        moves = np.zeros(markets, bool)
        for i in range(n):
            mine = truth.take(active)
            told = BidBatch(values[active], eb[active], size[active])
            owner = np.full(len(active), i)
            now = Misreports(values[active, i], eb[active, i], size[active, i])
            found = best_reports(
                auction,
                mine,
                told,
                budget[active],
                owner,
                effort=effort,
                seed=seed * n + i,
                start=now,
            )
            current = Payoff(auction, mine, told, budget[active], owner)(now.at(None))[0]
            rows = np.flatnonzero(found.utility > current + small[active, i])
            chosen = active[rows]
            values[chosen, i], eb[chosen, i], size[chosen, i] = (
                found.values[rows], found.privacy_budget[rows], found.data_size[rows],
            )  # fmt: skip
            moves[chosen] = True
        sweeps[active] = sweep
        ending[active[~moves[active]]] = REST
        active = active[moves[active]]
        for k in active:
            mark = _mark(values[k], eb[k], size[k])
            if mark in seen[k]:
                ending[k] = CYCLE
            seen[k].add(mark)
        active = active[ending[active] != CYCLE]
        if progress is not None:
            progress(markets - len(active), markets)
        if not len(active):
            break
    moved = (
        (values != bids.values).any(axis=2) | (eb != bids.privacy_budget) | (size != bids.data_size)
    )
    return Rest(ending, sweeps, BidBatch(values, eb, size), moved)


def _mark(values: Floats, privacy_budget: Floats, data_size: Floats) -> bytes:
    """The reports of a market to four digits: where a cycle has come back to."""
    numbers = np.concatenate([values.ravel(), privacy_budget, data_size])
    scale = 10.0 ** np.floor(np.log10(np.maximum(np.abs(numbers), 1e-12)))
    return bytes(
        np.round(numbers / scale, 3).astype(np.float32).tobytes()
        + scale.astype(np.float32).tobytes()
    )
