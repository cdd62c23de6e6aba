"""The mean of a buyer's models so far, with more weight on later ones, in the memory of one model.

This is polynomial-decay averaging (Shamir and Zhang 2013): after round t = 1, 2, ...

    mean_t = mean_{t-1} + (eta + 1) / (t + eta) x (w_t - mean_{t-1})

gives w_s a weight proportional to s (s + 1) ... (s + eta - 1) for a whole eta, about s^eta. The
models in it have a mean age of about t / (eta + 2). A plain mean of the latest share a of the
rounds has the mean age a t / 2, so that the share a stands for eta = 2 / a - 2: a = 1 is the plain
mean of all models after a round, and for a towards 0 only the latest model counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def averaged(mean: Floats, latest: Floats, rounds: int, share: float) -> Floats:
    """(D,) the mean after so many rounds, from the one a round earlier and the latest model.

    The model before the first round does not count: after one round the mean is the latest model.
    """
    eta = 2.0 / share - 2.0
    if rounds == 1:
        return latest.copy()
    return mean + (eta + 1.0) / (rounds + eta) * (latest - mean)
