"""The best test of a message against nothing but noise, for a broker who knows a direction."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from flmarket_sim.checks.aggregate_cosine import checked_alignment, in_noise, judged_heights
from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.other_messages import units
from flmarket_sim.checks.random_directions import log_mean_density, random_directions
from flmarket_sim.checks.simulated_noise import SEED, counted, draws_for
from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.laplace import Laplace

Noise = Literal["zeros", "random-direction"]
TIE = 1e-9  # of a height: orders messages of equal likelihood


class LikelihoodRatio:
    """The likelihood of nothing but noise against that of the direction which the broker knows.

    It reads `reference`; without one nobody is judged. Honest gradients are assumed to have at
    least `alignment` times the height of a gradient of full length in its direction. At 0 they do
    not point away from it; at 1 they are known. In between and at 1 the test is the most powerful
    one for the gradient with just this alignment:

    - PrivUnit, ProjUnit, Duchi's ball and Gaussian noise: the ratio falls with the height along the
      reference, so the height is the test. For PrivUnit the ratio has two values, one in the cap
      and one outside; the height orders messages of equal ratio, which costs nothing
    - Laplace: log ratio = sum over coordinates of (|m_j - g_j| - |m_j|) e / (2 C), for g the full
      gradient times `alignment`; noise is the release of zeros here. Each coordinate of an honest
      gradient is assumed to be at least that of g, on its side of zero. At alignment 0 the test is
      the height. With noise = "random-direction", noise is the release of a full gradient of random
      direction, as the cheat `nothing-but-noise` sends it: its likelihood is a mean over directions
      (checks/random_directions.py). That test is for a known gradient, so it needs alignment 1
    - all others: the height, with a p-value for every gradient by the promise of privacy

    `draws` is the number of simulated messages for Laplace; 0 leaves it to the dimension.
    """

    name = "likelihood-ratio"
    needs = ("reference",)

    def __init__(self, alignment: float = 0.0, draws: int = 0, noise: Noise = "zeros") -> None:
        if draws < 0:
            raise InputError(f"draws must be 0 or more (got {draws})")
        if noise not in get_args(Noise):
            raise InputError(f"noise must be 'zeros' or 'random-direction' (got {noise!r})")
        if noise == "random-direction" and alignment != 1.0:
            raise InputError(
                f"noise = 'random-direction' needs alignment = 1 (got {alignment:g}): its p-values "
                "are for a known gradient alone"
            )
        self.alignment, self.draws, self.noise = checked_alignment(alignment), draws, noise

    def scores(self, evidence: Evidence) -> Floats:
        directions = self._directions(evidence)
        if self._by_coordinates(evidence) and directions.any():
            return self._log_ratios(
                evidence.messages, self._gradient(evidence), self._scale(evidence)
            )
        heights = np.einsum("ij,ij->i", evidence.messages, directions)
        return -in_noise(evidence, heights, directions)

    def p_values(self, evidence: Evidence) -> Floats:
        directions = self._directions(evidence)
        if self._by_coordinates(evidence) and directions.any():
            return self._counted(evidence)
        heights = np.einsum("ij,ij->i", evidence.messages, directions)
        return judged_heights(evidence, directions, heights, self.alignment, noisy=False)

    def _by_coordinates(self, evidence: Evidence) -> bool:
        return type(evidence.perturbation) is Laplace and self.alignment > 0

    @staticmethod
    def _directions(evidence: Evidence) -> Floats:
        known = evidence.reference
        if known is None:
            return np.zeros(evidence.messages.shape)
        return np.tile(units(known[None]), (len(evidence.messages), 1))

    def _gradient(self, evidence: Evidence) -> Floats:
        """(D,) the gradient against which nothing but noise is tested."""
        assert evidence.reference is not None
        far = units(evidence.reference[None]) * (1e9 * evidence.clip)
        return np.asarray(self.alignment * evidence.perturbation.prepare(far, evidence.clip)[0])

    @staticmethod
    def _scale(evidence: Evidence) -> Floats:
        return np.asarray(2.0 * evidence.clip / evidence.privacy_loss)

    def _counted(self, evidence: Evidence) -> Floats:
        gradient, scale = self._gradient(evidence), self._scale(evidence)
        scores = self._log_ratios(evidence.messages, gradient, scale)
        result = np.empty(len(scores))
        for one in np.unique(scale):
            rows = scale == one
            honest = np.sort(self._honest(gradient / one))
            hits = len(honest) - np.searchsorted(honest, scores[rows], side="left")
            result[rows] = counted(hits, len(honest))
        return result

    def _log_ratios(self, messages: Floats, gradient: Floats, scale: Floats) -> Floats:
        """(n,) log densities of messages as noise over those around a gradient."""
        if self.noise == "zeros":
            return log_ratio(messages, gradient, scale)
        directions = np.abs(gradient).sum() * random_directions(len(gradient))
        result = np.abs(messages - gradient).sum(axis=1) / scale
        for one in np.unique(scale):
            rows = scale == one
            result[rows] += log_mean_density(messages[rows] / one, directions / one)
        return np.asarray(result)

    def _honest(self, gradient: Floats) -> Floats:
        """(M,) scores of simulated honest messages, for a gradient in units of the noise."""
        draws = self.draws or draws_for(len(gradient))
        rng = np.random.default_rng([SEED, len(gradient), 6])
        step = max(1, 2**20 // len(gradient))
        parts = []
        for begin in range(0, draws, step):
            noise = rng.laplace(size=(min(step, draws - begin), len(gradient)))
            parts.append(self._log_ratios(noise + gradient, gradient, np.ones(len(noise))))
        return np.concatenate(parts)


def log_ratio(messages: Floats, gradient: Floats, scale: Floats) -> Floats:
    """(n,) log densities of Laplace messages (n, D) around zeros over those around a gradient."""
    less = np.abs(messages - gradient).sum(axis=1) - np.abs(messages).sum(axis=1)
    return np.asarray((less - TIE * (messages @ gradient) / np.abs(gradient).max()) / scale)
