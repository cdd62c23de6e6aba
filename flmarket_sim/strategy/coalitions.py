"""Owners who misreport together: coalitions, and owners with several names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Bools, Floats, Misreports
from flmarket_sim.strategy.payoff import Payoff, require_one_outcome
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import Effort


@dataclass(frozen=True)
class CoalitionResult:
    """A coalition in each of K markets.

    truthful    (K,) the sum of its members' utilities if they tell the truth
    together    (K,) the same with the best joint reports of the search
    alone_gain  (K,) the sum of what each member gains by misreporting alone
    reports     the joint reports, beside the truth of all others
    """

    truthful: Floats
    together: Floats
    alone_gain: Floats
    reports: BidBatch

    @property
    def gain(self) -> Floats:
        return np.maximum(self.together - self.truthful, 0.0)


def coalition(
    auction: Any,
    truth: Profiles,
    budget: Floats,
    members: Bools,
    *,
    effort: str | Effort = "quick",
    seed: int = 0,
    passes: int = 2,
    levels: int = 8,
) -> CoalitionResult:
    """The best joint report found for `members` (K, n; the same number in every market).

    In turn, each member takes the report that serves the sum. This is a lower bound for two
    reasons: the search of one member is one, and moving one member at a time misses what needs two
    moves at once.
    """
    bids = truth.bids(levels)
    require_one_outcome(auction, bids, budget)
    count = members.sum(axis=1)
    if (count != count[0]).any() or count[0] == 0:
        raise InputError(
            "a coalition needs the same number of members, at least one, in every market"
        )
    places = np.argsort(~members, axis=1, kind="stable")[:, : count[0]]
    reports = bids
    alone, together = np.zeros((2, truth.shape[0]))
    for turn in range(passes):
        for j, owner in enumerate(places.T):
            start = Misreports.of(reports, owner)
            if turn == 0:
                single = best_reports(
                    auction, truth, bids, budget, owner, effort=effort, seed=seed + j
                )
                alone += np.maximum(single.gain, 0.0)
                start = single.misreports
            best = best_reports(
                auction, truth, reports, budget, owner,
                effort=effort, seed=seed + 100 + j, group=members, start=start,
            )  # fmt: skip
            reports = best.misreports.within(reports, owner)
            together = best.utility
    first = places[:, 0]
    payoff = Payoff(auction, truth, bids, budget, first, group=members)
    truthful = payoff(Misreports.of(bids, first).at(None))[0]
    better = together > truthful
    reports = BidBatch(
        np.where(better[:, None, None], reports.values, bids.values),
        np.where(better[:, None], reports.privacy_budget, bids.privacy_budget),
        np.where(better[:, None], reports.data_size, bids.data_size),
        reports.stated_valuations().where(better[:, None], bids.stated_valuations()),
    )
    return CoalitionResult(truthful, np.maximum(together, truthful), alone, reports)


@dataclass(frozen=True)
class FalseNamesResult:
    """One owner of each of K markets under one name and under several; her utilities (K,).

    one_truthful, one_lying    one name: the truth, and the best misreport found
    many_truthful, many_lying  several names with equal parts of her records: the truth about each
                               part, and the best joint misreports found
    cost                       what selling everything costs her
    """

    one_truthful: Floats
    one_lying: Floats
    many_truthful: Floats
    many_lying: Floats
    cost: Floats


def false_names(
    auction: Any,
    truth: Profiles,
    budget: Floats,
    owner: Any,
    names: int,
    *,
    effort: str | Effort = "quick",
    seed: int = 0,
    levels: int = 8,
) -> FalseNamesResult:
    """Owner owner[k] of market k appears as `names` owners with equal, disjoint parts of her
    records.

    Each part can be sold up to her privacy budget. Single-minded owners are refused: their cost is
    not the sum of the costs of parts.
    """
    if (truth.family == valuation.STEP).any():
        raise InputError(
            "a single-minded owner's cost is not the sum of her parts': "
            "false names need another family"
        )
    bids = truth.bids(levels)
    require_one_outcome(auction, bids, budget)
    everyone, n = np.arange(truth.shape[0]), truth.shape[1]
    if (truth.data_size[everyone, owner] < names).any():
        raise InputError(f"an owner with fewer than {names} records cannot have {names} names")
    single = best_reports(auction, truth, bids, budget, owner, effort=effort, seed=seed)

    def widened(column: Any, part: Any) -> Any:
        """`column` with the owner's entry and names - 1 further columns replaced by `part`."""
        wide = np.concatenate(
            [column, np.repeat(column[everyone, owner][:, None], names - 1, axis=1)], axis=1
        )
        wide[everyone, owner] = part[:, 0]
        wide[:, n:] = part[:, 1:]
        return wide

    def same(column: Any) -> Any:
        return np.repeat(column[everyone, owner][:, None], names, axis=1)

    whole = truth.data_size[everyone, owner]
    base = np.floor(whole / names)
    parts = np.repeat(base[:, None], names, axis=1)
    parts[:, 0] += whole - base * names
    split = Profiles(
        widened(truth.family, same(truth.family)), widened(truth.rate, same(truth.rate)),
        widened(truth.privacy_budget, same(truth.privacy_budget)), widened(truth.data_size, parts),
    )  # fmt: skip
    her_names = np.zeros(split.shape, bool)
    her_names[everyone, owner] = True
    her_names[:, n:] = True
    joint = coalition(auction, split, budget, her_names, effort=effort, seed=seed, levels=levels)
    cost = truth.value(truth.privacy_budget)[everyone, owner]
    return FalseNamesResult(
        single.truthful_utility, single.utility, joint.truthful, joint.together, cost
    )
