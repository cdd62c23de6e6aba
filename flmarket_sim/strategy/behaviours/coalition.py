"""Owners who bid together and share the gain."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.auctions.play import expected_utility
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.strategy.behaviours.behaviour import (
    BehaviourReports,
    CohortView,
    Feedback,
    Floats,
    Ints,
    Transfers,
)
from flmarket_sim.strategy.misreports import Misreports
from flmarket_sim.strategy.search import best_reports
from flmarket_sim.strategy.search_effort import effort_of

Members = Annotated[int, Field(ge=2, le=1000)]
Turns = Annotated[int, Field(ge=1, le=100)]


class Coalition:
    """Groups of up to `size` owners of a round, who bid for the sum of their utilities.

    The members of a group find a joint report in turns, `turns` times around: each takes the report
    that is best for all of them, given the reports of the group so far and the truth of all others.
    If they earn more than the truth would have earned by their own expectation, they share the gain
    equally.
    """

    name = "coalition"

    def __init__(self, size: Members = 2, turns: Turns = 1, effort: str = "quick") -> None:
        effort_of(effort)
        self.size, self.turns, self.effort = size, turns, effort
        self.expected: dict[tuple[int, int], Floats] = {}

    def groups(self, view: CohortView) -> list[Ints]:
        """Positions in the view, group by group; the last group may have one member, who has no
        partner."""
        return [
            np.arange(begin, min(begin + self.size, len(view.owners)))
            for begin in range(0, len(view.owners), self.size)
        ]

    def report(self, view: CohortView) -> BehaviourReports:
        groups = [group for group in self.groups(view) if len(group) > 1]
        values, budget, size = view.values.copy(), view.privacy_budget.copy(), view.data_size.copy()
        stated = view.truthful.stated_valuations().at((0, view.slots))
        money = np.full(1, view.budget)
        self.expected[view.buyer, view.round] = expected_utility(
            view.auction, view.asked, view.truthful, money
        )[0][0, view.slots]
        for turn in range(self.turns * self.size):
            acting = [group for group in groups if turn % self.size < len(group)]
            if not acting:
                continue
            members = np.array([group[turn % self.size] for group in acting])
            markets = view.asked.take(np.zeros(len(acting), np.int64))
            together = np.zeros(markets.shape, np.bool_)
            reports = [
                np.repeat(a, len(acting), axis=0)
                for a in (view.truthful.values, *_columns(view.truthful))
            ]
            statements = view.truthful.stated_valuations().at(np.zeros(len(acting), np.int64))
            for row, group in enumerate(acting):
                columns = view.slots[group]
                statements = statements.replaced((row, columns), stated.at(group))
                together[row, columns] = True
                for everybody, ours in zip(reports, (values, budget, size), strict=True):
                    everybody[row, columns] = ours[group]
            best = best_reports(
                view.auction,
                markets,
                BidBatch(reports[0], reports[1], reports[2], statements),
                np.repeat(money, len(acting)),
                view.slots[members],
                effort=self.effort,
                seed=int(view.rng.integers(2**31)),
                group=together,
                start=Misreports(
                    values[members], budget[members], size[members], stated.at(members)
                ),
            )
            values[members], budget[members], size[members] = (
                best.values,
                best.privacy_budget,
                best.data_size,
            )
            stated = stated.replaced(members, best.stated)
        return BehaviourReports(values, budget, size, stated=stated)

    def share(self, feedback: Feedback) -> Transfers:
        view = feedback.view
        by_truth = self.expected.pop((view.buyer, view.round))
        moves: list[tuple[int, int, float]] = []
        for group in self.groups(view):
            gain = float((feedback.utility - by_truth)[group].sum())
            if gain > 0:
                owed = by_truth[group] + gain / len(group) - feedback.utility[group]
                moves += settled(view.owners[group].tolist(), owed.tolist())
        payer, payee, amount = zip(*moves, strict=True) if moves else ((), (), ())
        return Transfers(
            np.array(payer, np.int64), np.array(payee, np.int64), np.array(amount, np.float64)
        )


def settled(people: list[int], owed: list[float]) -> list[tuple[int, int, float]]:
    """Payments (payer, payee, amount) that settle what everybody is owed; `owed` sums to zero."""
    debtors = [[person, -amount] for person, amount in zip(people, owed, strict=True) if amount < 0]
    moves = []
    for person, amount in zip(people, owed, strict=True):
        while amount > 0 and debtors:
            paid = min(amount, debtors[-1][1])
            if paid > 0:
                moves.append((int(debtors[-1][0]), person, float(paid)))
            amount -= paid
            debtors[-1][1] -= paid
            if debtors[-1][1] <= 0:
                debtors.pop()
    return moves


def _columns(bids: BidBatch) -> tuple[Floats, Floats]:
    return bids.privacy_budget, bids.data_size
