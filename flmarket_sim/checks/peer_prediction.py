"""Peer prediction: does the sign of a coordinate say something about the others' sign there?"""

from __future__ import annotations

import numpy as np

from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.simulated_noise import coin_flips, counted


class PeerPrediction:
    """Correlated agreement of signs: agreement on the same coordinates less that on different ones.

    Coordinates are the tasks, and the sign of a message there is the report, as in the mechanisms
    of Dasgupta and Ghosh (2013) and of Shnayder, Agarwal, Frongillo and Parkes (2016). With s_i the
    signs of owner i and t_i the mean signs of all others, the agreement is

        A_i = mean over d of s_i(d) (t_i(d) - mean of t_i),

    which is zero on average for who reports without a look at her records, however she does it.
    The score is -A_i. The p-value assumes that an honest owner's signs agree with the others' at
    least as often as coins do: given where her message is not zero, it is the chance of coins.
    """

    name = "peer-prediction"

    def scores(self, evidence: Evidence) -> Floats:
        signs, others = _reports(evidence)
        if len(signs) < 2:
            return np.full(len(signs), np.nan)
        return np.asarray(-np.einsum("ij,ij->i", signs, others) / signs.shape[1])

    def p_values(self, evidence: Evidence) -> Floats:
        signs, others = _reports(evidence)
        if len(signs) < 2:
            return np.ones(len(signs))
        coins = coin_flips(signs.shape[1])
        agreement = np.einsum("ij,ij->i", signs, others)
        chance = coins @ (np.abs(signs) * others).T
        slack = 1e-12 * np.abs(others).sum(axis=1)
        return counted((chance <= agreement + slack).sum(axis=0), len(coins))


def _reports(evidence: Evidence) -> tuple[Floats, Floats]:
    """(n, D) signs, and the mean signs of all others less their mean over the coordinates."""
    signs = np.sign(np.where(np.isfinite(evidence.messages), evidence.messages, 0.0))
    others = (signs.sum(axis=0) - signs) / max(len(signs) - 1, 1)
    return signs, others - others.mean(axis=1, keepdims=True)
