"""Rules with a formula: ConvlAggr, minimal variance, equal weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.rule import Floats, check_inputs, check_variance, normalised


class ConvlAggr:
    """Weights proportional to the data sizes of those who sell (FedAvg; the paper's baseline)."""

    name = "convl-aggr"

    def weights(self, privacy_loss: ArrayLike, data_size: ArrayLike, clip: float = 1.0) -> Floats:
        loss, size = check_inputs(privacy_loss, data_size, clip)
        return normalised(np.where(loss > 0, size, 0.0), size)


class VarOpt:
    """Weights proportional to 1 / V, by the paper's variance e^2: the least variance, whatever the
    bias."""

    name = "var-opt"

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        loss, size = check_inputs(privacy_loss, data_size, clip)
        if variance is None:
            largest = np.maximum(loss.max(axis=1, keepdims=True), np.finfo(float).tiny)
            return normalised((loss / largest) ** 2, size)
        noise = check_variance(variance, loss, clip)
        least = noise.min(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinite where nobody sells
            return normalised(np.where(loss > 0, least / noise, 0.0), size)


class UniformWeights:
    """The same weight for everybody who sells."""

    name = "uniform"

    def weights(self, privacy_loss: ArrayLike, data_size: ArrayLike, clip: float = 1.0) -> Floats:
        loss, size = check_inputs(privacy_loss, data_size, clip)
        return normalised((loss > 0).astype(float), size)
