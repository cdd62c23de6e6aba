"""An aggregation rule: a blend of the data sizes and of the precision of the gradients."""

from __future__ import annotations

import numpy as np


class BlendedWeights:
    """Weights in proportion to d^(1 - precision) e^(2 precision).

    `precision` = 0 is `convl-aggr` (no regard for noise), 1 is `var-opt` (no regard for bias).
    """

    name = "blended-weights"

    def __init__(self, precision: float = 0.5) -> None:
        if not 0 <= precision <= 1:
            raise ValueError("precision must lie in [0, 1]")
        self.precision = precision

    def weights(self, privacy_loss, data_size, clip=1.0):
        loss, size = np.asarray(privacy_loss, float), np.asarray(data_size, float)
        nobody_sells = ~(loss > 0).any(axis=1, keepdims=True)
        score = np.where(loss > 0, size ** (1 - self.precision) * loss ** (2 * self.precision), 0.0)
        score = np.where(nobody_sells, size, score)  # then the contract asks for data shares
        return score / score.sum(axis=1, keepdims=True)
