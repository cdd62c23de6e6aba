"""Does the noise protect as much as it says? A statistical lower bound on the privacy loss (THEORY section 5).

Inputs +L e_1 and -L e_1 are as far apart as clipped gradients get. If a mechanism is e-private, the chance of any event under
one is at most exp(e) times its chance under the other. The event "first coordinate >= L" has chances 1/2 and
exp(-e)/2 under the true mechanism. Clopper-Pearson bounds on both give a lower bound on e that holds with the stated confidence: if it is
above the claimed e, the mechanism is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from flmarket_sim.privacy.clipping import clip_l1
from flmarket_sim.privacy.laplace import perturb

Floats = NDArray[np.float64]
Mechanism = Callable[[Floats, float, float, np.random.Generator], Floats]


@dataclass(frozen=True)
class AuditResult:
    """`lower_bound` on the privacy loss at `confidence`; `passed` says that it does not exceed the claim."""

    claimed: float
    lower_bound: float
    draws: int
    confidence: float

    @property
    def passed(self) -> bool:
        return self.lower_bound <= self.claimed


def laplace_mechanism(gradients: Floats, privacy_loss: float, clip: float, rng: np.random.Generator) -> Floats:
    """What an owner does to her gradient: (n, D) in, clipped and perturbed out."""
    clipped, _ = clip_l1(gradients, clip)
    return perturb(clipped, rng.laplace(size=clipped.shape), privacy_loss, clip)


def audit(
    privacy_loss: float,
    clip: float = 1.0,
    draws: int = 100_000,
    confidence: float = 0.999,
    seed: int = 0,
    mechanism: Mechanism = laplace_mechanism,
) -> AuditResult:
    """A lower bound on the privacy loss of `mechanism` from `draws` outputs for each of two extreme inputs."""
    rng = np.random.default_rng(seed)
    extreme = np.zeros((draws, 2))
    extreme[:, 0] = clip
    hits = [int((mechanism(sign * extreme, privacy_loss, clip, rng)[:, 0] >= clip).sum()) for sign in (1.0, -1.0)]
    risk = (1.0 - confidence) / 2.0
    likely = betaincinv(hits[0], draws - hits[0] + 1, risk) if hits[0] else 0.0
    unlikely = betaincinv(hits[1] + 1, draws - hits[1], 1.0 - risk) if hits[1] < draws else 1.0
    bound = float(np.log(likely / unlikely)) if likely > 0 else 0.0
    return AuditResult(privacy_loss, max(bound, 0.0), draws, confidence)
