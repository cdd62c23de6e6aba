"""The privacy loss of many releases together, by dp-accounting.

The sum of the losses, which the ledger adds up, always holds, even if each loss is chosen after
seeing earlier releases. For losses that do not depend on earlier releases, composition with a small
chance of failure `delta` is tighter. Every e-private release reveals at most as much as randomised
response with e (Kairouz, Oh and Viswanath 2015). So composing randomised responses covers Laplace
noise on vectors of any length, from streams or hardened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from flmarket_sim.errors import InputError

GRID = 100_000  # points of the privacy loss distribution from 0 to the sum


def accounting() -> Any:
    """dp-accounting's privacy loss distributions."""
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError as error:
        raise InputError(
            f"this needs dp-accounting, which is not installed ({error}): "
            "pip install 'flmarket-sim[privacy]'"
        ) from None
    return common, privacy_loss_distribution


LARGEST = 700.0  # exp of more overflows, and so large a loss leaves nothing to protect


def composed_loss(privacy_losses: Iterable[float], delta: float) -> float:
    """The epsilon at `delta` of all releases together: at most their sum, and the sum at delta = 0.

    It is an upper bound: dp-accounting rounds each release up by at most 1/100,000 of the sum.
    """
    losses = [float(loss) for loss in privacy_losses if loss > 0]
    total = math.fsum(losses)
    if not 0 <= delta < 1:
        raise InputError(f"delta must be at least 0 and below 1 (got {delta:g})")
    common, distributions = accounting()
    if delta == 0 or len(losses) == 0 or max(losses) > LARGEST:
        return total
    step = total / GRID
    whole: Any = None
    for loss in sorted(set(losses)):
        one = distributions.from_privacy_parameters(
            common.DifferentialPrivacyParameters(loss, 0.0), value_discretization_interval=step
        ).self_compose(losses.count(loss))
        whole = one if whole is None else whole.compose(one)
    return min(float(whole.get_epsilon_for_delta(delta)), total)
