"""Shapley values of the sellers of a round."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.contribution.contribution_rule import Contributions, Game
from flmarket_sim.contribution.shapley_values import (
    added_in_order,
    all_coalitions,
    exact_values,
    prefixes,
)


class Shapley:
    """What a seller adds to those who come before her, in the mean over all orders of the sellers.

    Shapley, "A Value for n-Person Games" (1953). Values sum to what all together are worth beyond
    nobody. They are exact for up to `exact` sellers, at the price of 2^n coalitions. For more they
    are means over `permutations` random orders (Castro, Gomez and Tejada, 2009), unbiased, with the
    standard error of that mean.
    """

    name = "shapley"

    def __init__(
        self,
        exact: Annotated[int, Field(ge=1, le=14)] = 10,
        permutations: Annotated[int, Field(ge=2, le=100_000)] = 100,
    ) -> None:
        self.exact, self.permutations = exact, permutations

    def values(self, game: Game, rng: np.random.Generator) -> Contributions:
        n = game.players
        if n <= self.exact:
            member = all_coalitions(n)
            value = exact_values(game.worth(member)[None], member)[0]
            return Contributions(value, np.zeros(n))
        order = rng.random((1, self.permutations, n)).argsort(axis=2)
        nobody = game.worth(np.zeros((1, n), bool))
        added = added_in_order(game.worth(prefixes(order)[0])[None], nobody, order)[0]
        spread = added.std(axis=0, ddof=1)
        return Contributions(added.mean(axis=0), spread / np.sqrt(self.permutations))
