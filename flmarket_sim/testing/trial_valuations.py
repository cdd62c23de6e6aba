"""Valuations of no family of the paper, for audits: what a mechanism promises to owners of any
valuation must hold for these too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.valuation_family import Floats

HALVINGS = 80
BEYOND = 1e3  # privacy losses that nobody sells
SPACING, KNOTS = 0.25, 13  # of the splines: knots from 0 to 3


class TrialValuation:
    """A valuation whose inverse is found by halving."""

    name = "trial"

    def value(self, privacy_loss: Floats) -> Floats:
        raise NotImplementedError

    def loss_for_money(self, money: Floats) -> Floats:
        low, high = np.zeros_like(money), np.full_like(money, BEYOND)
        never = self.value(high) <= money
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            cheap = self.value(middle) <= money
            low, high = np.where(cheap, middle, low), np.where(cheap, high, middle)
        return np.where(never, np.inf, low)


class Between(TrialValuation):
    """2 e^1.5: between linear and quadratic."""

    name = "between"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(2.0 * privacy_loss**1.5)


class Concave(TrialValuation):
    """2 e^0.7: between square-root and linear."""

    name = "concave"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(2.0 * privacy_loss**0.7)


class Logarithm(TrialValuation):
    """3 log(1 + e)."""

    name = "logarithm"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(3.0 * np.log1p(privacy_loss))


class SoftStep(TrialValuation):
    """A soft step around a loss of 0.8: almost everything is lost there."""

    name = "logistic"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(2.0 * (np.tanh(4.0 * (privacy_loss - 0.8)) + np.tanh(3.2)))


class RootAndSquare(TrialValuation):
    """sqrt(e) + e^2: dear at first, and dear at the end."""

    name = "root-and-square"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(np.sqrt(privacy_loss) + privacy_loss**2)


class LineAndStep(TrialValuation):
    """e, and 1 for selling anything at all."""

    name = "line-and-step"

    def value(self, privacy_loss: Floats) -> Floats:
        return np.asarray(privacy_loss + (privacy_loss > 0))


class Spline(TrialValuation):
    """A random smooth curve that rises: its slope is straight between random heights."""

    name = "spline"
    seed = 0

    def __init__(self) -> None:
        heights: NDArray[np.float64] = np.random.default_rng(self.seed).exponential(2.0, KNOTS)
        self.heights = np.append(heights, heights[-1])
        areas = 0.5 * SPACING * (heights[1:] + heights[:-1])
        self.values = np.concatenate([[0.0], np.cumsum(areas)])

    def value(self, privacy_loss: Floats) -> Floats:
        piece = np.minimum(privacy_loss / SPACING, KNOTS - 1).astype(np.int64)
        within = privacy_loss - piece * SPACING
        bend = (self.heights[piece + 1] - self.heights[piece]) / SPACING
        return np.asarray(self.values[piece] + within * (self.heights[piece] + 0.5 * within * bend))


class SecondSpline(Spline):
    """Another random curve."""

    name = "second-spline"
    seed = 1


class ThirdSpline(Spline):
    """A third random curve."""

    name = "third-spline"
    seed = 2


TRIAL_VALUATIONS = tuple(
    f"{__name__}:{cls.__name__}"
    for cls in (
        Between, Concave, Logarithm, SoftStep, RootAndSquare, LineAndStep,
        Spline, SecondSpline, ThirdSpline,
    )
)  # fmt: skip
