"""The contract of contribution rules: `values(game, rng)` says what each seller contributed."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import ContractError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Game(Protocol):
    """What every coalition of the n = `players` sellers of a round would have been worth."""

    @property
    def players(self) -> int: ...

    def worth(self, member: Bools) -> Floats:
        """(S,) the worth of S coalitions, member (S, n); also of nobody and of all. More is
        better."""
        ...


class Contributions(NamedTuple):
    """The value (n,) of each seller, in the unit of the game, and its standard_error (n,).

    The error is 0 where the value is exact.
    """

    value: Floats
    standard_error: Floats


class ContributionRule(Protocol):
    """The value of every seller in a game: a function of the game and of the generator alone.

    Values may be negative. Options are constructor arguments.
    """

    name: str

    def values(self, game: Game, rng: np.random.Generator) -> Contributions: ...


def check_contributions(name: str, made: Any, players: int) -> Contributions:
    """Refuses what are not finite values with standard errors of at least 0."""
    arrays = [np.asarray(part) for part in made] if isinstance(made, tuple) else []
    if len(arrays) != 2 or any(a.shape != (players,) or a.dtype != np.float64 for a in arrays):
        raise ContractError(
            f"contribution {name!r}: values must give Contributions of two float64 arrays of shape "
            f"({players},)"
        )
    value, error = arrays
    if not (np.isfinite(value) & np.isfinite(error) & (error >= 0)).all():
        raise ContractError(
            f"contribution {name!r}: values must be finite, and standard errors at least 0, got "
            f"{value.tolist()} and {error.tolist()}"
        )
    return Contributions(value, error)
