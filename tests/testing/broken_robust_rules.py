"""Robust rules that are broken in one way each, for the check that must notice it."""

import numpy as np

from flmarket_sim.aggregation.robust.coordinate_median import CoordinateMedian
from flmarket_sim.aggregation.robust.krum import Krum
from flmarket_sim.aggregation.robust.robust_rule import Breakdown
from flmarket_sim.aggregation.weighted_sum import WeightedSum


class WrongShape(WeightedSum):
    def combine(self, messages, weights, variance):
        return messages[:1]


class SinglePrecision(WeightedSum):
    def combine(self, messages, weights, variance):
        return (weights @ messages).astype(np.float32)


class WritesToItsArguments(WeightedSum):
    def combine(self, messages, weights, variance):
        messages *= weights[:, None]
        return messages.sum(axis=0)


class Remembers(WeightedSum):
    calls = 0

    def combine(self, messages, weights, variance):
        self.calls += 1
        return weights @ messages * (1 + 1e-6 * self.calls)


class AddsAConstant(WeightedSum):
    def combine(self, messages, weights, variance):
        return weights @ messages + 1.0


class TrustsTheFirst(CoordinateMedian):
    def combine(self, messages, weights, variance):
        return np.array(messages[0])


class CountsEverybody(CoordinateMedian):
    """It forgets the weights, and with them that some are 0."""

    def combine(self, messages, weights, variance):
        return np.median(messages, axis=0)


class DeliversNothing(CoordinateMedian):
    """It is safe from every cheat, except where all agree."""

    def combine(self, messages, weights, variance):
        return np.array(messages[0]) if len(np.unique(messages, axis=0)) == 1 else 0 * messages[0]


class GoesTheOtherWay(WeightedSum):
    def combine(self, messages, weights, variance):
        return -(weights @ messages)


class SquaresTwice(WeightedSum):
    """Fourth powers of large numbers are none."""

    def combine(self, messages, weights, variance):
        power = weights @ messages**4
        return np.where(power > 0, weights @ messages * power / power, weights @ messages)


class SaysHalf(WeightedSum):
    """A weighted sum that calls itself robust."""

    def breakdown(self, weights, variance):
        return Breakdown(weights, 0.5)


class SaysTooMuch(CoordinateMedian):
    """It counts votes by heads, although its medians are of weights."""

    def breakdown(self, weights, variance):
        return Breakdown(np.ones(len(weights)), 0.5)


class SaysNoVotes(Krum):
    def breakdown(self, weights, variance):
        return 0.2


class TakesTheLongest(Krum):
    def combine(self, messages, weights, variance):
        return np.array(messages[np.abs(messages).sum(axis=1).argmax()])


BROKEN = [
    (WrongShape, "form", r"must give float64 of shape \(1,\), got float64 \(1, 1\)"),
    (SinglePrecision, "form", "got float32"),
    (WritesToItsArguments, "form", "changes its arguments"),
    (Remembers, "form", "two calls give two gradients"),
    (AddsAConstant, "unanimous", "another is delivered"),
    (TrustsTheFirst, "order", "order of the sellers"),
    (CountsEverybody, "no weight", "a message of weight 0 counts"),
    (DeliversNothing, "honest", r"has 0\.00 of the common one"),
    (GoesTheOtherWay, "honest", r"has -1\.\d+ of the common one"),
    (SquaresTwice, "large", "not finite"),
    (SaysHalf, "breakdown", "carry the gradient away"),
    (SaysTooMuch, "breakdown", "carry the gradient away"),
    (SaysNoVotes, "breakdown", "must give a Breakdown|it failed"),
    (TakesTheLongest, "breakdown", "carry the gradient away"),
]
