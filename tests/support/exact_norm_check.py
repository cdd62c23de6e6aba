"""A check for these tests: PrivUnit's messages have one norm, and any other norm is a proof."""

import numpy as np


class ExactNorm:
    """Accuses a message whose norm is not the only one that PrivUnit gives at the sold loss."""

    name = "exact-norm"

    def scores(self, evidence):
        dimension = evidence.messages.shape[1]
        variance = evidence.perturbation.variance(evidence.privacy_loss, dimension, evidence.clip)
        expected = np.sqrt(variance + evidence.clip**2)
        return np.abs(np.linalg.norm(evidence.messages, axis=1) / expected - 1.0)

    def p_values(self, evidence):
        return np.where(self.scores(evidence) > 1e-6, 0.0, 1.0)


class Suspicious:
    """Accuses the owners whose numbers are divisible by three, and gives them `p_value`."""

    name = "suspicious"

    def __init__(self, p_value: float = 0.01) -> None:
        self.p_value = p_value

    def scores(self, evidence):
        return (evidence.owner % 3 == 0).astype(float)

    def p_values(self, evidence):
        return np.where(evidence.owner % 3 == 0, self.p_value, 1.0)


class AgainstOthers:
    """Accuses whoever points away from the sum of all messages: half of the noise, and few others
    where much privacy is sold."""

    name = "against-others"

    def scores(self, evidence):
        return -evidence.messages @ evidence.messages.sum(axis=0)

    def p_values(self, evidence):
        others = evidence.messages.sum(axis=0) - evidence.messages
        return np.where((evidence.messages * others).sum(axis=1) < 0, 0.01, 1.0)
