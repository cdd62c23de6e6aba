"""What the purchase loses without a seller."""

from __future__ import annotations

import numpy as np

from flmarket_sim.contribution.contribution_rule import Contributions, Game


class LeaveOneOut:
    """The worth of all sellers together less their worth without her.

    It takes n + 1 coalitions only. Values do not sum to anything in particular: of two sellers who
    can replace each other, neither has a value.
    """

    name = "leave-one-out"

    def values(self, game: Game, rng: np.random.Generator) -> Contributions:
        n = game.players
        worth = game.worth(np.concatenate([np.ones((1, n), bool), ~np.eye(n, dtype=bool)]))
        return Contributions(worth[0] - worth[1:], np.zeros(n))
