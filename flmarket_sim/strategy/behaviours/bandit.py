"""Bandits, which remember the mean payoff of each strategy: epsilon-greedy and UCB."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from flmarket_sim.strategy.behaviours.behaviour import (
    BehaviourReports,
    CohortView,
    Feedback,
    Floats,
    Ints,
)
from flmarket_sim.strategy.behaviours.strategy_grid import (
    FACTORS,
    Factors,
    Grid,
    GridLearner,
    Parts,
    payoffs,
)

Method = Literal["epsilon-greedy", "ucb"]
Epsilon = Annotated[float, Field(ge=0, le=1)]
Width = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Bandit(GridLearner):
    """Each owner tries every strategy of a grid once, then mostly plays the one that paid her best.

    "epsilon-greedy" plays a random strategy with chance `epsilon`; "ucb" plays the largest mean +
    width sqrt(2 ln t / plays).
    """

    name = "bandit"

    def __init__(
        self,
        factors: Factors = FACTORS,
        privacy_budget: Parts = (1.0, 0.6),
        data_size: Parts = (1.0,),
        method: Method = "epsilon-greedy",
        epsilon: Epsilon = 0.1,
        width: Width = 0.3,
    ) -> None:
        grid = Grid(factors, privacy_budget, data_size)
        super().__init__(grid, 2 * len(grid))  # plays of each strategy, then sums of its payoffs
        self.method, self.epsilon, self.width = method, epsilon, width

    def report(self, view: CohortView) -> BehaviourReports:
        rows = self.rows(view)
        plays, means = self.seen(rows)
        lot = view.rng.random((len(view.owners), len(self.grid)))
        worth = np.where(plays == 0, np.inf, means + self._bonus(plays))
        best = worth == worth.max(axis=1, keepdims=True)
        chosen: Ints = np.where(best, lot, -1.0).argmax(axis=1)  # equals by lot
        explore = view.rng.random(len(view.owners)) < (
            self.epsilon if self.method == "epsilon-greedy" else 0.0
        )
        chosen = np.where(explore, lot.argmax(axis=1), chosen)
        return self.play(view, chosen)

    def learn(self, feedback: Feedback) -> None:
        chosen = self.pending.take(feedback.view)
        rows = self.rows(feedback.view)
        self.memory.table[rows, chosen] += 1
        self.memory.table[rows, len(self.grid) + chosen] += payoffs(feedback)

    def seen(self, rows: Ints) -> tuple[Floats, Floats]:
        """(k, A) plays, and mean payoffs of what was played."""
        plays, sums = np.split(self.memory.table[rows], 2, axis=1)
        return plays, sums / np.maximum(plays, 1)

    def _bonus(self, plays: Floats) -> Floats:
        if self.method == "epsilon-greedy":
            return np.zeros_like(plays)
        total = np.maximum(plays.sum(axis=1, keepdims=True), 1.0)
        return np.asarray(self.width * np.sqrt(2 * np.log(total) / np.maximum(plays, 1)))
