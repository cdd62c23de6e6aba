"""The privacy loss of many releases together, by dp-accounting.

The sum of the losses, which the ledger adds up, always holds, even if each loss is chosen after
seeing earlier releases. For losses that do not depend on earlier releases, composition with a small
chance of failure `delta` is tighter. Every e-private release reveals at most as much as randomised
response with e (Kairouz, Oh and Viswanath 2015). An (e, delta)-private one reveals at most as much
as randomised response that tells everything with chance delta. So composing these covers every
perturbation, on vectors of any length, from streams or hardened.
"""

from __future__ import annotations

import math
from collections import Counter
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


def composed_loss(
    privacy_losses: Iterable[float], delta: float, deltas: Iterable[float] | None = None
) -> float:
    """The epsilon at `delta` of all releases together: at most their sum, and the sum at delta = 0.

    `deltas` are those of the releases' own promises, if they are not pure. Where these leave
    nothing of `delta`, no epsilon holds: the result is infinite. It is an upper bound:
    dp-accounting rounds each release up by at most 1/100,000 of the sum.
    """
    given = [float(loss) for loss in privacy_losses]
    own = [0.0] * len(given) if deltas is None else [float(one) for one in deltas]
    releases = [pair for pair in zip(given, own, strict=True) if max(pair) > 0]
    total = math.fsum(loss for loss, _ in releases)
    if not 0 <= delta < 1:
        raise InputError(f"delta must be at least 0 and below 1 (got {delta:g})")
    common, distributions = accounting()
    # (sum of e, sum of delta) holds always; the rounding of that sum does not count
    simple = total if math.fsum(own) <= delta * (1 + 1e-12) else math.inf
    if delta == 0 or total == 0 or max(releases)[0] > LARGEST:
        return simple
    step = total / GRID
    whole: Any = None
    for pair, count in sorted(Counter(releases).items()):
        one = distributions.from_privacy_parameters(
            common.DifferentialPrivacyParameters(*pair), value_discretization_interval=step
        ).self_compose(count)
        whole = one if whole is None else whole.compose(one)
    return min(float(whole.get_epsilon_for_delta(delta)), simple)
