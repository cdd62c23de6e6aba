"""The weighted sum of messages that are no longer than the others."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.aggregation.robust.coordinate_median import HALF, weighted_medians
from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats, noise_scales
from flmarket_sim.aggregation.weighted_sum import weighted_sum


class NormBounding:
    """The weighted sum of messages that are shortened to a norm of at most b s_i.

    Sun, Kairouz, Suresh and McMahan, "Can You Really Backdoor Federated Learning?" (2019) bound
    norms by a constant. Here most of a norm is noise, whose size s_i is known. So norms are
    compared in units of s_i, and b is `factor` times their weighted median. An honest owner with
    much noise is not shortened for it, and one who sends more than she sold is. Weights are those
    of the sum and of the median.
    """

    name = "norm-bounding"

    def __init__(self, factor: Annotated[float, Field(gt=0, le=1e6)] = 1.5) -> None:
        self.factor = factor

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        scale = noise_scales(variance)
        norm = np.sqrt(np.einsum("ij,ij->i", messages, messages))
        bound = self.factor * weighted_medians((norm / scale)[:, None], weights)[0] * scale
        shortened = np.minimum(1.0, bound / np.where(norm > 0, norm, 1.0))
        return weighted_sum(weights * shortened, messages)

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return Breakdown(weights, HALF)
