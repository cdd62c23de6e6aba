"""Krum and multi-Krum: the messages that have many others near them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.aggregation.robust.distances import squared_distances
from flmarket_sim.aggregation.robust.robust_rule import Breakdown, Floats, noise_scales

Ints = NDArray[np.int64]
CheatShare = Annotated[float, Field(ge=0, lt=0.5)]


class Krum:
    """The one message with the lowest score: the mean distance to its nearest others.

    Blanchard, El Mhamdi, Guerraoui and Stainer, "Machine Learning with Adversaries: Byzantine
    Tolerant Gradient Descent" (NeurIPS 2017). Of n messages f = `cheats` n may be anything, at most
    (n - 3) / 2, and the score of a message is over its n - f - 2 nearest others.

    Known noise is taken off: a neighbour j counts with |m_i - m_j|^2 - V_j, which is |m_i - g_j|^2
    in the mean, g_j being what j would have sent without noise. So it does not matter which
    neighbours are noisy, while the noise of m_i itself counts against it, as it should in a choice
    of the message that is delivered. Owners are counted by heads. Weights decide nothing but that
    messages of weight 0 are left out.
    """

    name = "krum"

    def __init__(self, cheats: CheatShare = 0.2) -> None:
        self.cheats = cheats

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        counts = np.flatnonzero(weights > 0)
        score = krum_scores(messages[counts], variance[counts], self.cheats)
        return np.array(messages[counts[score.argmin()]])

    def breakdown(self, weights: Floats, variance: Floats) -> Breakdown:
        return heads(weights, self.cheats)


class MultiKrum(Krum):
    """The weighted mean of the n - f messages with the lowest scores of Krum.

    Scores are those of `krum` in units of V_i: a message is judged by whether it is far away for
    the noise that was sold, and not by the noise, which its weight knows already. The weights of
    the chosen messages enter the mean in their own proportions.
    """

    name = "multi-krum"

    def combine(self, messages: Floats, weights: Floats, variance: Floats) -> Floats:
        counts = np.flatnonzero(weights > 0)
        noise = noise_scales(variance[counts]) ** 2
        score = krum_scores(messages[counts], variance[counts], self.cheats) / noise
        kept = len(counts) - cheats_among(len(counts), self.cheats)
        chosen = counts[np.sort(np.argsort(score, kind="stable")[:kept])]
        return np.asarray((weights[chosen] / weights[chosen].sum()) @ messages[chosen])


def cheats_among(count: int, share: float) -> int:
    """f: how many of so many messages may be anything. Krum needs more than 2 f + 2 messages."""
    return max(min(int(share * count + 1e-9), (count - 3) // 2), 0)


def krum_scores(messages: Floats, variance: Floats, cheats: float) -> Floats:
    """(n,) mean squared distance of each message to its n - f - 2 nearest others, less their noise.

    With fewer than four messages everybody has one neighbour.
    """
    n = len(messages)
    if n == 1:
        return np.zeros(1)
    distance = squared_distances(messages) - variance
    np.fill_diagonal(distance, np.inf)
    near = max(n - cheats_among(n, cheats) - 2, 1)
    return np.asarray(np.partition(distance, near - 1, axis=1)[:, :near].mean(axis=1))


def heads(weights: Floats, cheats: float) -> Breakdown:
    """One vote for every message of a positive weight; f of them may be anything."""
    votes = np.where(weights > 0, 1.0, 0.0)
    count = int(votes.sum())
    most = cheats_among(count, cheats)
    return Breakdown(votes / count, (most + 0.5) / count if most else 0.0)
