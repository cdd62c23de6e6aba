"""Messages that were sent before: stale ones of the same owner, and copies of others'."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.near_law import near_chance

ROUNDING = 1e-12  # of a squared length: distances are differences of squares


class Consistency:
    """The distance of a message to her own past messages and to those of others.

    Noise is fresh in every round, so an honest message does not come near an earlier one, even of
    the same gradient. Half of the p-value is for her own past messages and half for the others',
    and each half is shared by all messages that are compared (Bonferroni). The score is minus its
    logarithm. The p-values hold for every gradient: their assumption is none. Without a past nobody
    is judged.

    Copies within a round are not looked for, since nobody can tell the copy from the original; an
    old gradient with fresh noise is an honest message of an honest owner whose gradient is old.
    """

    name = "consistency"
    needs = ("history",)

    def scores(self, evidence: Evidence) -> Floats:
        if not _past(evidence)[0].size:
            return np.full(len(evidence.messages), np.nan)
        return -np.log(np.maximum(self.p_values(evidence), np.finfo(float).tiny))

    def p_values(self, evidence: Evidence) -> Floats:
        known, owner = _past(evidence)
        result = np.ones(len(evidence.messages))
        if not known.size:
            return result
        distances = _distances(evidence.messages, known)
        own = evidence.owner[:, None] == owner
        for compared in (own, ~own):
            number = compared.sum(axis=1)
            far = np.where(compared, distances, np.inf)
            place = far.argmin(axis=1)
            for loss in np.unique(evidence.privacy_loss):
                rows = np.flatnonzero((evidence.privacy_loss == loss) & (number > 0))
                chance = near_chance(
                    evidence.perturbation,
                    float(loss),
                    evidence.clip,
                    far[rows, place[rows]],
                    known[place[rows]],
                )
                result[rows] = np.minimum(result[rows], 2.0 * number[rows] * chance)
        return result


def _past(evidence: Evidence) -> tuple[Floats, NDArray[np.int64]]:
    """All past messages (R, D) that are finite, and whose they are (R,)."""
    if not evidence.history:
        return np.zeros((0, evidence.messages.shape[1])), np.zeros(0, np.int64)
    messages = np.concatenate([past.messages for past in evidence.history])
    owner = np.concatenate([past.owner for past in evidence.history])
    finite = np.isfinite(messages).all(axis=1)
    return messages[finite], owner[finite]


def _distances(messages: Floats, known: Floats) -> Floats:
    """(n, R) distances, rounded up."""
    lengths = np.einsum("ij,ij->i", messages, messages)[:, None]
    others = np.einsum("ij,ij->i", known, known)
    squared = lengths + others - 2.0 * messages @ known.T
    return np.asarray(np.sqrt(np.maximum(squared, 0.0) + ROUNDING * (lengths + others)))
