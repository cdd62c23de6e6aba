"""The mean cosine of a message with those of owners who sold as much."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from flmarket_sim.checks.aggregate_cosine import checked_alignment, in_noise, judged_heights
from flmarket_sim.checks.check import Evidence, Floats
from flmarket_sim.checks.other_messages import equal_losses, sums_of_others, units

Peers = Annotated[int, Field(ge=1, le=10**6)]


class PeerCosine:
    """The mean cosine with the peers: the other owners who sold the same privacy loss.

    Peers count the same whatever the lengths of their messages are, so one long message does not
    decide the direction. Scores, assumption and `alignment` are those of aggregate-cosine, along
    the sum of the peers' directions. Who has fewer than `peers` is not judged.
    """

    name = "peer-cosine"

    def __init__(self, alignment: float = 0.0, peers: Peers = 2) -> None:
        self.alignment, self.peers = checked_alignment(alignment), peers

    def scores(self, evidence: Evidence) -> Floats:
        directions, heights = self.heights(evidence)
        return -in_noise(evidence, heights, directions)

    def p_values(self, evidence: Evidence) -> Floats:
        directions, heights = self.heights(evidence)
        return judged_heights(evidence, directions, heights, self.alignment, noisy=True)

    def heights(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """(n, D) unit directions of the peers, zeros without them, and (n,) heights along them."""
        directions = np.zeros(evidence.messages.shape)
        points = units(evidence.messages)
        for group in equal_losses(evidence.privacy_loss):
            if len(group) > self.peers:
                directions[group] = units(sums_of_others(points[group], np.ones(len(group))))
        return directions, np.einsum("ij,ij->i", evidence.messages, directions)
