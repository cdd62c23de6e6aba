"""The detection of CSRA: too much noise, and then too little in common with those who sold as
much."""

from __future__ import annotations

import numpy as np

from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.other_messages import equal_losses
from flmarket_sim.checks.peer_cosine import PeerCosine
from flmarket_sim.checks.two_means import lower_cluster
from flmarket_sim.checks.variance import Variance

FEWEST = 4  # owners of equal loss whose cosines are split in two


class CsraDetection:
    """Noise variance over the sold one, then 2-means on cosine similarity among equal losses.

    It is the detection of "CSRA: Robust Incentive Mechanism Design for Differentially Private
    Federated Learning" (IEEE Transactions on Information Forensics and Security, 2024), whose
    auction is `csra`. An owner is suspected if the variance of her message, over the variance that
    she sold, exceeds a threshold. Among owners who sold the same privacy loss, 2-means then splits
    the mean cosines with the peers, and the lower cluster is suspected.

    The publication sets its threshold by hand, and one of two clusters always is the lower one, so
    honest owners are accused at a rate that nobody knows. Here both steps have p-values: of a long
    message as in `variance`, and of a low cosine as in `peer-cosine`, which counts in the lower
    cluster alone. The p-value is twice the smaller one. It needs what peer-cosine assumes. The
    score is minus its logarithm.
    """

    name = "csra"

    def __init__(self, alignment: float = 0.0) -> None:
        self.variance = Variance("more")
        self.peers = PeerCosine(alignment)

    def scores(self, evidence: Evidence) -> Floats:
        return -np.log(np.maximum(self.p_values(evidence), np.finfo(float).tiny))

    def p_values(self, evidence: Evidence) -> Floats:
        noise = self.variance.p_values(evidence)
        cosine = np.ones(len(noise))
        scores = self.peers.scores(evidence)
        apart = np.zeros(len(noise), bool)
        for group in equal_losses(evidence.privacy_loss):
            if len(group) >= FEWEST and np.isfinite(scores[group]).all():
                apart[group] = lower_cluster(-scores[group])
        if apart.any():
            cosine[apart] = self.peers.p_values(evidence)[apart]
        return np.minimum(1.0, 2.0 * np.minimum(noise, cosine))
