"""How long messages take, in simulated seconds: a delay model makes delays of uniform numbers."""

from __future__ import annotations

from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.errors import InputError

Floats = NDArray[np.float64]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Spread = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Delay(Protocol):
    """`seconds` maps uniforms in [0, 1) to delays >= 0; `random` says whether it uses them."""

    name: str
    random: bool

    def seconds(self, uniform: Floats) -> Floats: ...


class ConstantDelay:
    """Every message takes the same time."""

    name = "constant"
    random = False

    def __init__(self, seconds: Seconds = 0.05) -> None:
        self.value = seconds

    def seconds(self, uniform: Floats) -> Floats:
        return np.full(np.shape(uniform), self.value)


class UniformDelay:
    """Between `low` and `high` seconds."""

    name = "uniform"
    random = True

    def __init__(self, low: Seconds, high: Seconds) -> None:
        if low > high:
            raise InputError(f"delay 'uniform': low ({low}) must not exceed high ({high})")
        self.low, self.high = low, high

    def seconds(self, uniform: Floats) -> Floats:
        return np.asarray(self.low + (self.high - self.low) * uniform)


class LognormalDelay:
    """`median` seconds with a heavy tail: the logarithm has standard deviation `sigma`."""

    name = "lognormal"
    random = True

    def __init__(self, median: Spread, sigma: Spread = 1.0) -> None:
        self.median, self.sigma = median, sigma

    def seconds(self, uniform: Floats) -> Floats:
        from scipy.special import ndtri  # takes 0.2 s, and other delays do not need it

        inside = np.clip(uniform, 1e-16, None)  # the quantile of exactly 0 is not finite
        return np.asarray(self.median * np.exp(self.sigma * ndtri(inside)))
