"""Multiplicative weights from bandit feedback (EXP3: Auer, Cesa-Bianchi, Freund, Schapire 2002)."""

from __future__ import annotations

from typing import Annotated

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

Exploration = Annotated[float, Field(gt=0, le=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Exp3(GridLearner):
    """Each owner has a weight for every strategy of a grid, and raises the weights that paid.

    With A strategies and weights w she plays j with chance p_j = (1 - exploration) w_j / sum(w) +
    exploration / A; a payoff x multiplies w_j by exp(learning_rate x / p_j). Payoffs are shares of
    the true value of her whole privacy budget, and 0 when she sells nothing. The default learning
    rate is exploration / A.
    """

    name = "exp3"

    def __init__(
        self,
        factors: Factors = FACTORS,
        privacy_budget: Parts = (1.0, 0.6),
        data_size: Parts = (1.0,),
        exploration: Exploration = 0.1,
        learning_rate: Rate | None = None,
    ) -> None:
        grid = Grid(factors, privacy_budget, data_size)
        super().__init__(grid, len(grid))  # logarithms of weights
        self.exploration = exploration
        self.learning_rate = exploration / len(grid) if learning_rate is None else learning_rate

    def report(self, view: CohortView) -> BehaviourReports:
        chance = self.chances(self.rows(view))
        drawn = view.rng.random((len(view.owners), 1)) * chance.sum(axis=1, keepdims=True)
        chosen: Ints = np.minimum((chance.cumsum(axis=1) <= drawn).sum(axis=1), len(self.grid) - 1)
        return self.play(view, chosen)

    def learn(self, feedback: Feedback) -> None:
        chosen = self.pending.take(feedback.view)
        rows = self.rows(feedback.view)
        played = np.take_along_axis(self.chances(rows), chosen[:, None], axis=1)[:, 0]
        self.memory.table[rows, chosen] += self.learning_rate * payoffs(feedback) / played

    def chances(self, rows: Ints) -> Floats:
        """(k, A) how likely each owner is to play each strategy."""
        scores = self.memory.table[rows]
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        exploit = weights / weights.sum(axis=1, keepdims=True)
        return np.asarray((1 - self.exploration) * exploit + self.exploration / len(self.grid))
