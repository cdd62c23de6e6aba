"""The contract of robust rules: `combine(messages, weights, variance)` is the delivered gradient.

An aggregation rule turns privacy losses and data sizes into weights; a robust rule turns the
messages themselves into one gradient. The first cannot see a cheat, since it never looks at a
message. The second limits what a few messages can do, whatever is in them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import ContractError, InputError

Floats = NDArray[np.float64]
LARGEST_NUMBER = 1e100  # of a message: sums of squares are still numbers
SUM_TOLERANCE = 1e-6


class RobustRule(Protocol):
    """One gradient from the messages of n sellers: a pure function of its arguments.

    A message of weight 0 does not count, and the order of the sellers does not matter. Where all
    messages are the same vector and were sold with equal noise, that vector is delivered. Options
    are constructor arguments.
    """

    name: str

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        """(D,) the delivered gradient.

        messages  (n, D) what sellers released: finite, n and D at least 1
        weights   (n,) those of the aggregation rule, at least 0, with the sum 1
        variance  (n,) total variance of each message at the privacy loss that its seller sold, as
                  the perturbation states it; an upper bound where that says so
        """
        ...


class Breakdown(NamedTuple):
    """What a rule withstands.

    Messages whose `votes` (n,) sum to less than `share` of all votes cannot carry the result away,
    whatever is in them: it stays within a bound that the other messages set. A share of 0 says that
    one message can.
    """

    votes: Floats
    share: float


@runtime_checkable
class StatesBreakdown(Protocol):
    """An optional ability of a robust rule: it says what it withstands."""

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown: ...


def noise_scales(variance: Floats) -> Floats:
    """(n,) standard deviations of messages, 1 in the mean of squares; all 1 if any has no noise.

    A message without noise would make all others count as nothing or as everything.
    """
    if not (variance > 0).all() or not np.isfinite(variance).all():
        return np.ones(len(variance))
    return np.asarray(np.sqrt(variance / variance.max() / (variance / variance.max()).mean()))


def standardised(weights: Floats, variance: Floats) -> Floats:
    """(n,) weights l_i s_i / sum(l s), s_i being the noise scale of message i.

    A median pulls with a force that does not grow with the distance: a message counts as its weight
    over its typical distance. So a message of weight l_i has to pull with l_i s_i, if it is to
    count as l_i. With l_i in proportion to 1 / s_i^2 this is 1 / s_i, the efficient choice for a
    median of values with unequal scales.
    """
    pull = weights * noise_scales(variance)
    return np.asarray(pull / pull.sum())


def combined(rule: RobustRule, messages: Any, weights: Any, variance: Any) -> Floats:
    """(D,) what a rule makes of the messages; refuses arguments and results that break the
    contract."""
    arrays = [np.asarray(a, np.float64) for a in (messages, weights, variance)]
    message, weight, noise = arrays
    if message.ndim != 2 or 0 in message.shape:
        raise InputError(
            f"messages must be of shape (n, D) with at least one of each, got {message.shape}"
        )
    for name, array in (("weights", weight), ("variance", noise)):
        if array.shape != (len(message),):
            raise InputError(f"{name} must be of shape ({len(message)},), got {array.shape}")
    if not (np.abs(message) <= LARGEST_NUMBER).all():
        raise InputError(f"messages must be finite and at most {LARGEST_NUMBER:g} in size")
    if not ((weight >= 0).all() and abs(weight.sum() - 1.0) <= SUM_TOLERANCE):
        raise InputError(f"weights must be at least 0 and sum to 1, got {weight.tolist()}")
    if not ((noise >= 0).all() and np.isfinite(noise).all()):
        raise InputError(f"variance must be finite and at least 0, got {noise.tolist()}")
    return check_combination(rule.name, rule.combine(message, weight, noise), message.shape[1])


def check_combination(name: str, result: Any, dimension: int) -> Floats:
    """Refuses what is not one finite gradient."""
    array = np.asarray(result)
    if array.shape != (dimension,) or array.dtype != np.float64:
        raise ContractError(
            f"robust rule {name!r}: combine must give float64 of shape ({dimension},), got "
            f"{array.dtype} {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ContractError(f"robust rule {name!r}: the combined gradient is not finite")
    return array
