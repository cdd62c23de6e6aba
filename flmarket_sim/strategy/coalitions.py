"""Owners who lie together: coalitions that share what they gain, and persons with several names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.auctions.play import draws_numbers
from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.strategy.misreports import Bools, Floats, Misreports
from flmarket_sim.strategy.payoff import Payoff
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import Effort


@dataclass(frozen=True)
class Joint:
    """Of a coalition in each of K markets: the sum of its members' utilities under the truth, with
    their best joint reports found, and what they would gain if each lied alone; the joint reports.
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
) -> Joint:
    """The best joint report found for `members` (K, n; the same number in every market): in turn,
    each moves to what serves the sum.

    A lower bound twice over: the search of one member is one, and moving one at a time can miss
    what needs two at once.
    """
    bids = _one_outcome(auction, truth, budget, levels)
    count = members.sum(axis=1)
    if (count != count[0]).any() or count[0] == 0:
        raise InputError(
            "a coalition needs the same number of members, at least one, in every market"
        )
    places = np.argsort(~members, axis=1, kind="stable")[:, : count[0]]
    everyone = np.arange(truth.shape[0])
    values, eb, size = bids.values.copy(), bids.privacy_budget.copy(), bids.data_size.copy()
    alone = np.zeros(len(everyone))
    truthful = together = np.zeros(len(everyone))
    for turn in range(passes):
        for j in range(places.shape[1]):
            owner = places[:, j]
            if turn == 0:
                single = best_reports(
                    auction, truth, bids, budget, owner, effort=effort, seed=seed + j
                )
                alone += np.maximum(single.gain, 0.0)
                now = single.lies
            else:
                now = Misreports(
                    values[everyone, owner], eb[everyone, owner], size[everyone, owner]
                )
            told = BidBatch(values, eb, size)
            found = best_reports(
                auction,
                truth,
                told,
                budget,
                owner,
                effort=effort,
                seed=seed + 100 + j,
                group=members,
                start=now,
            )
            values[everyone, owner], eb[everyone, owner], size[everyone, owner] = (
                found.values, found.privacy_budget, found.data_size,
            )  # fmt: skip
            together = found.utility
    first = places[:, 0]
    honest = Misreports(
        *(column[everyone, first] for column in (bids.values, bids.privacy_budget, bids.data_size))
    )
    truthful = Payoff(auction, truth, bids, budget, first, group=members)(honest.at(None))[0]
    better = together > truthful
    reports = BidBatch(
        np.where(better[:, None, None], values, bids.values),
        np.where(better[:, None], eb, bids.privacy_budget),
        np.where(better[:, None], size, bids.data_size),
    )
    return Joint(truthful, np.maximum(together, truthful), alone, reports)


@dataclass(frozen=True)
class Split:
    """One owner of each of K markets under one name and under several; utilities (K,) of the
    person.

    one_truthful, one_lying      one name: the truth, the best lie found
    many_truthful, many_lying    several names with equal parts of her records: truthful about each
                                 part, the best joint lies found
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
) -> Split:
    """Owner owner[k] of market k appears as `names` owners with equal parts of her records,
    disjoint, so that each part can be sold up to her privacy budget. Single-minded owners are
    refused: their cost is not the sum of the costs of parts."""
    if (truth.family == valuation.STEP).any():
        raise InputError(
            "a single-minded owner's cost is not the sum of her parts': false names need another family"
        )
    bids = _one_outcome(auction, truth, budget, levels)
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
    mine = np.zeros(split.shape, bool)
    mine[everyone, owner] = True
    mine[:, n:] = True
    joint = coalition(auction, split, budget, mine, effort=effort, seed=seed, levels=levels)
    cost = truth.value(truth.privacy_budget)[everyone, owner]
    return Split(single.truthful_utility, single.utility, joint.truthful, joint.together, cost)


def _one_outcome(auction: Any, truth: Profiles, budget: Floats, levels: int) -> BidBatch:
    bids = truth.bids(levels)
    if draws_numbers(auction, bids, budget):
        raise InputError(
            f"auction {auction.name!r} draws numbers: this study needs one outcome for one set of reports"
        )
    return bids
