"""A statistical lower bound on the privacy loss of a release (docs/theory.md, section 5).

Gradients far beyond the threshold along +e_1 and -e_1 are as far apart, once clipped, as two
gradients can be: 2 L. If a mechanism is e-private, the chance of any event under one is at most
exp(e) times its chance under the other. The event "first coordinate >= L" has chances 1/2 and
exp(-e)/2 under the true mechanism. Clopper-Pearson bounds on both give a lower bound on e that
holds with the stated confidence: if it is above the claimed e, the mechanism is broken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.privacy.noise import create_noise
from flmarket_sim.privacy.release import Release
from flmarket_sim.randomness import Streams

Floats = NDArray[np.float64]
Mechanism = Callable[[Floats, float, float, np.random.Generator], Floats]
Progress = Callable[[int, int], None]
BATCH = 10_000  # draws at a time
MOST_DRAWS = 10**10
FAR = 10.0  # times the threshold: inputs that only clipping brings to it


@dataclass(frozen=True)
class AuditResult:
    """`lower_bound` on the privacy loss at `confidence`; `passed` if it does not exceed the claim.

    `reach` is about the bound that so many draws find if the claim is tight: an audit of few draws
    cannot show much.
    """

    claimed: float
    lower_bound: float
    draws: int
    confidence: float
    reach: float

    @property
    def passed(self) -> bool:
        return self.lower_bound <= self.claimed


@dataclass(frozen=True)
class Batch:
    """`count` draws from number `begin` on, for the extreme input along `sign` e_1."""

    privacy_loss: float
    clip: float
    seed: int
    sign: int
    begin: int
    count: int

    def hits(self, mechanism: Mechanism) -> int:
        """How often the first coordinate of what the mechanism releases is at least L."""
        rng = np.random.default_rng([self.seed, self.begin, self.sign + 1])
        raw = np.zeros((self.count, 2))
        raw[:, 0] = self.sign * FAR * self.clip
        return int((mechanism(raw, self.privacy_loss, self.clip, rng)[:, 0] >= self.clip).sum())


def released(
    gradients: Floats,
    privacy_loss: float,
    clip: float,
    rng: np.random.Generator,
    noise: str = "simulation",
) -> Floats:
    """What the market releases of these gradients (n, D), one owner a row: clipped and noisy."""
    source = create_noise(noise, clip, Streams(int(rng.integers(2**63))))
    leaving = Release(gradients, [privacy_loss] * len(gradients), clip, source)
    return np.stack([leaving.leave(row, row, 0, 0) for row in range(len(gradients))])


def audit(
    privacy_loss: float,
    clip: float = 1.0,
    draws: int = 100_000,
    confidence: float = 0.999,
    seed: int = 0,
    mechanism: Mechanism = released,
    progress: Progress | None = None,
) -> AuditResult:
    """A lower bound on the privacy loss of `mechanism`, from `draws` outputs for each of two
    extreme inputs."""
    batches = audit_batches(privacy_loss, clip, draws, seed)
    hits = []
    for batch in batches:
        hits.append(batch.hits(mechanism))
        if progress is not None:
            progress(len(hits), len(batches))
    return audit_result(list(zip(batches, hits, strict=True)), confidence)


def audit_batches(privacy_loss: float, clip: float, draws: int, seed: int) -> list[Batch]:
    """All draws of an audit, for both inputs."""
    if not 0 < privacy_loss < math.inf:
        raise InputError(f"the claimed privacy loss must be a number above 0 (got {privacy_loss})")
    if not 1 <= draws <= MOST_DRAWS:
        raise InputError(f"an audit takes between 1 and {MOST_DRAWS:,} draws (got {draws:,})")
    return [
        Batch(privacy_loss, clip, seed, sign, begin, min(BATCH, draws - begin))
        for begin in range(0, draws, BATCH)
        for sign in (1, -1)
    ]


def audit_result(counts: Sequence[tuple[Batch, int]], confidence: float) -> AuditResult:
    """What the batches of an audit show, each with its number of hits."""
    claimed = counts[0][0].privacy_loss
    draws = sum(batch.count for batch, _ in counts if batch.sign == 1)
    likely = sum(hits for batch, hits in counts if batch.sign == 1)
    unlikely = sum(hits for batch, hits in counts if batch.sign == -1)
    bound = lower_bound(likely, unlikely, draws, confidence)
    reach = lower_bound(round(draws / 2), round(draws * np.exp(-claimed) / 2), draws, confidence)
    return AuditResult(claimed, bound, draws, confidence, reach)


def lower_bound(likely: int, unlikely: int, draws: int, confidence: float) -> float:
    """Of the logarithm of the ratio of two chances, from how often each event came in `draws`."""
    from scipy.special import betaincinv  # takes 0.2 s, and a run does not need it

    risk = (1.0 - confidence) / 2.0
    least = betaincinv(likely, draws - likely + 1, risk) if likely else 0.0
    most = betaincinv(unlikely + 1, draws - unlikely, 1.0 - risk) if unlikely < draws else 1.0
    return max(float(np.log(least / most)), 0.0) if least > 0 else 0.0
