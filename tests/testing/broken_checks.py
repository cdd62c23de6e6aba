"""Checks that are broken in one way each, for the property that must notice it."""

import numpy as np

from flmarket_sim.checks.aggregate_cosine import AggregateCosine
from flmarket_sim.checks.variance import Variance


class WrongShape(Variance):
    def p_values(self, evidence):
        return super().p_values(evidence)[:1]


class Percent(Variance):
    def p_values(self, evidence):
        return 100.0 * super().p_values(evidence)


class AccusesTheUnjudged(AggregateCosine):
    """Who has no peers is suspicious."""

    def p_values(self, evidence):
        return np.where(np.isnan(self.scores(evidence)), 0.5, super().p_values(evidence))


class NeedsAPast(Variance):
    def p_values(self, evidence):
        return super().p_values(evidence) + 0.0 * evidence.history[0].scores[0]


class CentresTheMessages(AggregateCosine):
    def p_values(self, evidence):
        evidence.messages[:] -= evidence.messages.mean(axis=0)
        return super().p_values(evidence)


class Lottery(Variance):
    def p_values(self, evidence):
        return np.random.default_rng().random(len(evidence.messages))


class TrustsTheFirst(Variance):
    def p_values(self, evidence):
        return np.where(np.arange(len(evidence.messages)) == 0, 1.0, super().p_values(evidence))


class AlwaysTheLongestFive(Variance):
    """Somebody must have cheated."""

    def p_values(self, evidence):
        length = np.square(evidence.messages).sum(axis=1)
        return np.where(length >= np.sort(length)[-min(5, len(length))], 0.01, 1.0)


class ForgetsTheGradient(Variance):
    """The variance is taken as that of noise around zeros with a normal law."""

    def p_values(self, evidence):
        squared = np.square(evidence.messages).sum(axis=1)
        stated = evidence.perturbation.variance(
            evidence.privacy_loss, evidence.messages.shape[1], evidence.clip
        )
        return np.where(squared > 1.1 * stated, 0.01, 1.0)


BROKEN = [  # check, the property that notices, what it says
    (WrongShape, "form", "p_values must give float64 in the shape"),
    (Percent, "form", r"p_values must lie in \[0, 1\]"),
    (AccusesTheUnjudged, "form", "must have the p-value 1"),
    (NeedsAPast, "form", "it failed .form.: IndexError"),
    (CentresTheMessages, "evidence", "leave its evidence alone"),
    (Lottery, "evidence", "asked twice"),
    (TrustsTheFirst, "order", "change places"),
    (AlwaysTheLongestFive, "level", "it accuses 25.* % of honest owners"),
    (ForgetsTheGradient, "level", "of honest owners"),
]
