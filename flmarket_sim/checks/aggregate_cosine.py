"""The cosine of a message with the aggregate of all others."""

from __future__ import annotations

import numpy as np

from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.height_law import low_height
from flmarket_sim.checks.other_messages import at_most_the_median, sums_of_others, units
from flmarket_sim.errors import InputError

CAUTION = 1.05  # times chances along noisy directions, whose spread is not known exactly


class AggregateCosine:
    """The cosine with the weighted sum of the others' directions: low for who pulls against them.

    Each message counts as a direction of length 1, so a scaled message pulls no harder than an
    honest one. The weights are records over the standard deviation of what was sold: for messages
    of the length that was sold, that is their sum with weights records over variance. Weights above
    the median are the median, so among many sellers no owner decides the direction by her records
    or by her privacy loss. Among two or three sellers, one other message decides it. Many owners
    together can turn it: cheats who flip signs at a large loss make it point away from honest
    gradients, who are then accused (docs/cheating.md, "Cheats can frame honest owners").

    The score is minus the height along the others' sum, in standard deviations of one coordinate of
    what was sold. The p-value assumes that an honest gradient does not point away from the others'
    (alignment = 0), or that its height along their sum is at least `alignment` times that of a
    gradient of full length in this direction. Who has no others, or others whose sum is zero, is
    not judged.
    """

    name = "aggregate-cosine"

    def __init__(self, alignment: float = 0.0) -> None:
        self.alignment = checked_alignment(alignment)

    def scores(self, evidence: Evidence) -> Floats:
        directions, heights = self._heights(evidence)
        return -in_noise(evidence, heights, directions)

    def p_values(self, evidence: Evidence) -> Floats:
        directions, heights = self._heights(evidence)
        return judged_heights(evidence, directions, heights, self.alignment, noisy=True)

    @staticmethod
    def _heights(evidence: Evidence) -> tuple[Floats, Floats]:
        messages = evidence.messages
        variance = evidence.perturbation.variance(
            evidence.privacy_loss, messages.shape[1], evidence.clip
        )
        weights = at_most_the_median(evidence.data_size / np.sqrt(variance))
        directions = units(sums_of_others(units(messages), weights))
        return directions, np.einsum("ij,ij->i", messages, directions)


def checked_alignment(alignment: float) -> float:
    """An alignment between 0 and 1."""
    if not 0.0 <= alignment <= 1.0:
        raise InputError(f"alignment must lie between 0 and 1 (got {alignment:g})")
    return alignment


def in_noise(evidence: Evidence, heights: Floats, directions: Floats) -> Floats:
    """(n,) heights in standard deviations of one coordinate; NaN where there is no direction."""
    dimension = evidence.messages.shape[1]
    variance = evidence.perturbation.variance(evidence.privacy_loss, dimension, evidence.clip)
    scaled = heights / np.sqrt(variance / dimension)
    return np.where(directions.any(axis=1), scaled, np.nan)


def judged_heights(
    evidence: Evidence, directions: Floats, heights: Floats, alignment: float, noisy: bool
) -> Floats:
    """(n,) p-values of low heights; 1 where there is no direction."""
    found = directions.any(axis=1)
    result = np.ones(len(heights))
    if found.any():
        result[found] = low_height(
            evidence.perturbation,
            evidence.privacy_loss[found],
            evidence.clip,
            directions[found],
            heights[found],
            alignment,
            noisy,
        )
    if noisy:
        result = np.minimum(1.0, CAUTION * result)
    return result
