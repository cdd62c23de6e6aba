"""The two gradients that a perturbation tells apart best, and the event that shows it.

Only a perturbation itself knows where its promise is tight. One that says so is audited there;
others are audited where a search finds most (privacy/audit_event.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FAR = 10.0  # times the threshold: gradients that only `prepare` brings into the domain


@dataclass(frozen=True)
class WorstPair:
    """Raw gradients (D,) and the event "<release, direction> >= threshold".

    The event is likelier for `first` than for `second`, by a factor of exp(e) if the threshold is
    the right one. Without a threshold (None) an audit looks for one. `gaussian` says that releases
    are the gradient plus Gaussian noise, which allows a tighter bound.
    """

    first: Floats
    second: Floats
    direction: Floats
    threshold: float | None
    gaussian: bool = False


@runtime_checkable
class KnowsWorstPair(Protocol):
    """A perturbation that says where it can be told best what was released."""

    def worst_pair(self, privacy_loss: float, dimension: int, clip: float = 1.0) -> WorstPair:
        """The pair and the event for one privacy loss."""
        ...


def axis_pair(
    dimension: int, clip: float, threshold: float | None, gaussian: bool = False
) -> WorstPair:
    """Far along the first axis, against its opposite; the threshold is of the first coordinate."""
    axis = np.eye(1, dimension)[0]
    return WorstPair(FAR * clip * axis, -FAR * clip * axis, axis, threshold, gaussian)


def corner_pair(dimension: int, clip: float, threshold: float | None) -> WorstPair:
    """The corner of all ones, against its opposite; the threshold is of the sum of coordinates."""
    ones = np.ones(dimension)
    return WorstPair(FAR * clip * ones, -FAR * clip * ones, ones, threshold)
