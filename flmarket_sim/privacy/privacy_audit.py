"""A statistical lower bound on the privacy loss of a release (docs/theory.md, section 5).

Gradients far beyond the threshold along +e_1 and -e_1 are as far apart, once clipped, as two gradients get: 2 L. If a mechanism
is e-private, the chance of any event under one is at most exp(e) times its chance under the other. The event "first coordinate
>= L" has chances 1/2 and exp(-e)/2 under the true mechanism. Clopper-Pearson bounds on both give a lower bound on e that holds
with the stated confidence: if it is above the claimed e, the mechanism is broken.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

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
    """`lower_bound` on the privacy loss at `confidence`; `passed` says that it does not exceed the claim.

    `reach` is about the bound that so many draws find if the claim is tight: an audit of few draws cannot show much.
    """

    claimed: float
    lower_bound: float
    draws: int
    confidence: float
    reach: float

    @property
    def passed(self) -> bool:
        return self.lower_bound <= self.claimed


def released(
    gradients: Floats,
    privacy_loss: float,
    clip: float,
    rng: np.random.Generator,
    noise: str = "simulation",
) -> Floats:
    """What the market lets out of these gradients (n, D): its own clipping and noise, each row an owner's."""
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
    workers: int = 1,
    progress: Progress | None = None,
) -> AuditResult:
    """A lower bound on the privacy loss of `mechanism` from `draws` outputs for each of two extreme inputs.

    With several `workers` the mechanism must be importable (a function of a module, or a `partial` of one).
    """
    if not 0 < privacy_loss < math.inf:
        raise InputError(f"the claimed privacy loss must be a number above 0 (got {privacy_loss})")
    if not 1 <= draws <= MOST_DRAWS:
        raise InputError(f"an audit takes between 1 and {MOST_DRAWS:,} draws (got {draws:,})")
    hits = {1: 0, -1: 0}
    batches = [(sign, begin) for begin in range(0, draws, BATCH) for sign in hits]
    count = partial(_hits, mechanism, privacy_loss, clip, draws, seed)
    for done, found in enumerate(_spread(count, batches, workers)):
        hits[batches[done][0]] += found
        if progress is not None:
            progress(done + 1, len(batches))
    bound = lower_bound(hits[1], hits[-1], draws, confidence)
    reach = lower_bound(
        round(draws / 2), round(draws * np.exp(-privacy_loss) / 2), draws, confidence
    )
    return AuditResult(privacy_loss, bound, draws, confidence, reach)


def lower_bound(likely: int, unlikely: int, draws: int, confidence: float) -> float:
    """Of the logarithm of the ratio of two chances, from how often each event came in `draws` trials."""
    risk = (1.0 - confidence) / 2.0
    least = betaincinv(likely, draws - likely + 1, risk) if likely else 0.0
    most = betaincinv(unlikely + 1, draws - unlikely, 1.0 - risk) if unlikely < draws else 1.0
    return max(float(np.log(least / most)), 0.0) if least > 0 else 0.0


def _hits(
    mechanism: Mechanism,
    privacy_loss: float,
    clip: float,
    draws: int,
    seed: int,
    batch: tuple[int, int],
) -> int:
    sign, begin = batch
    rng = np.random.default_rng([seed, begin, sign + 1])
    raw = np.zeros((min(BATCH, draws - begin), 2))
    raw[:, 0] = sign * FAR * clip
    return int((mechanism(raw, privacy_loss, clip, rng)[:, 0] >= clip).sum())


def _spread(
    count: Callable[[tuple[int, int]], int], batches: list[tuple[int, int]], workers: int
) -> Iterator[int]:
    """The counts of the batches, in order, by several processes if asked."""
    if workers == 1:
        yield from map(count, batches)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(count, batches)
