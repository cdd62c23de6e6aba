"""Certified gains: for every owner an upper bound of what any misreport can gain.

The probe finds misreports, so its gains are lower bounds on regret. A certificate is the other
side: no report gains more. Which argument gives it depends on the auction:

    menu     the auction sells in turn: the best point of a menu that her report cannot move (exact)
    rule     a textbook auction: its payment in pieces, and branch and bound over budget and records
    network  a learned auction: branch and bound over boxes of reports through its network
    trivial  any other: she cannot be paid more than all of the buyer's money
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.auctions.auction import Auction, SellsInTurn, certified_parts, check_budget
from flmarket_sim.auctions.play import expected_utility, measured_against
from flmarket_sim.errors import plugin_errors
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.statistics import Estimate, estimate
from flmarket_sim.strategy.certified.box_search import BoundBoxes, BoxEffort, Largest, largest_value
from flmarket_sim.strategy.certified.lying_owner import LEAST_COST, LyingOwner
from flmarket_sim.strategy.certified.menus import best_on_menu
from flmarket_sim.strategy.certified.textbook_rules import (
    FairQuery,
    best_in_fair_query,
    bounds_of_rule,
)
from flmarket_sim.strategy.misreports import Floats
from flmarket_sim.threads import one_torch_thread

MENU, RULE, NETWORK, TRIVIAL = "menu", "rule", "network", "trivial"
WRONG = 1e-6  # of the buyer's money: a report this far above a bound refutes it
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CertifiedGain:
    """Upper bounds, all (K, n) unless stated otherwise.

    truthful_utility  expected utility when everybody tells the truth
    utility_bound     no report of hers, with all others truthful, has a higher expected utility
    cost              what gains are measured against, as in `Probe`
    nodes             boxes of reports that were bounded for her
    method            which argument gave the bounds: menu, rule, network or trivial
    """

    truth: Profiles
    truthful_utility: Floats
    utility_bound: Floats
    cost: Floats
    nodes: NDArray[np.int64]
    method: str

    def __repr__(self) -> str:
        markets, owners = self.truth.shape
        return (
            f"<CertifiedGain ({self.method}) of {markets:,} markets with {owners:,} owners each: "
            f"mean gain / cost at most {self.mean_relative_gain()}>"
        )

    @cached_property
    def gain(self) -> Floats:
        return np.maximum(self.utility_bound - self.truthful_utility, 0.0)

    @cached_property
    def relative_gain(self) -> Floats:
        """gain / cost: no owner's regret is above it."""
        return np.asarray(self.gain / self.cost)

    def mean_relative_gain(self) -> Estimate:
        return estimate(self.relative_gain.mean(axis=1), self.truth.population)


def certified_gain(
    auction: Auction,
    truth: Profiles,
    budget: ArrayLike,
    *,
    levels: int = 8,
    effort: BoxEffort | None = None,
    known: Floats | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> CertifiedGain:
    """An upper bound of every owner's gain by a unilateral misreport.

    The reports are those that the probe may make: values of any table that does not fall, a privacy
    budget from 1/1000 of hers to hers, and records from one to hers (hers if sizes are certified).
    `known` (K, n) are utilities that some reports reach, for instance `Probe.best_utility`: a
    search ends when its bound is near them. `progress(done, total)` counts owners.
    """
    effort = effort or BoxEffort()
    bids = truth.bids(levels)
    money = check_budget(bids, budget)
    certified = "data_size" in certified_parts(auction)
    with plugin_errors("auction", auction.name):
        honest, sold = expected_utility(auction, truth, bids, money, seed)
    cost = measured_against(truth, sold)
    reached = honest if known is None else np.maximum(honest, known)
    bound, nodes, method = np.zeros(truth.shape), np.zeros(truth.shape, np.int64), TRIVIAL
    with one_torch_thread():
        for k, i in np.ndindex(truth.shape):
            owner = LyingOwner.of(truth, bids, money, k, i, certified)
            used, best = _best(auction, owner, float(reached[k, i]), float(cost[k, i]), effort)
            method = method if used == TRIVIAL else used
            if best.bound < reached[k, i] - WRONG * money[k] and method != MENU:
                raise ArithmeticError(
                    f"auction {auction.name!r}, market {k}, owner {i}: a report reaches "
                    f"{reached[k, i]:.9g}, above the certified {best.bound:.9g}"
                )
            bound[k, i], nodes[k, i] = best.bound, best.nodes
            if progress is not None:
                progress(k * truth.shape[1] + i + 1, truth.rate.size)
    return CertifiedGain(truth, honest, bound, cost, nodes, method)


def _best(
    auction: Auction, owner: LyingOwner, known: float, cost: float, effort: BoxEffort
) -> tuple[str, Largest]:
    """The method for this auction, and the bound of the utility that it gives."""
    if isinstance(auction, SellsInTurn):
        with plugin_errors("auction", auction.name):
            return MENU, Largest(best_on_menu(auction, owner), 0)
    if owner.money <= 0:
        return TRIVIAL, Largest(0.0, 0)
    if type(auction) is FairQuery:
        return RULE, Largest(best_in_fair_query(owner), 0)
    method, bounds = RULE, bounds_of_rule(auction, owner)
    low, high = owner.limits() if bounds is None else bounds.whole()
    search: BoundBoxes | None = bounds
    if bounds is None and hasattr(auction, "learned"):
        from flmarket_sim.strategy.certified.network_bounds import bounds_of_network

        network = bounds_of_network(auction, owner)
        if network is not None:
            method, search = NETWORK, network
            low, high = network.whole()
    if search is None:
        least = owner.cost(np.array([LEAST_COST]), np.exp(low[1:]))[0]
        return TRIVIAL, Largest(max(0.0, owner.money - float(least)), 0)
    tolerance = effort.tolerance * cost
    best = largest_value(search, low, high, known=known, tolerance=tolerance, effort=effort)
    return method, Largest(max(best.bound, 0.0), best.nodes)
