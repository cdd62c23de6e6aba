"""What the constant guess scores: a model that always answers with the commonest class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flmarket_sim.learning.dataset import Dataset


class ConstantGuess(NamedTuple):
    """Test accuracy of the constant guess, and its mean recall: 1 / (classes with test records)."""

    accuracy: float
    balanced_accuracy: float


def constant_guess(data: Dataset) -> ConstantGuess:
    """How good it is to answer with the commonest class of the training records."""
    commonest = int(np.bincount(data.train_y).argmax())
    right = data.test_y == commonest
    tested = np.unique(data.test_y)
    return ConstantGuess(float(right.mean()), float((tested == commonest).mean()))
