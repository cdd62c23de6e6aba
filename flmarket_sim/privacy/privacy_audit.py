"""A statistical lower bound on the privacy loss of a perturbation (docs/privacy.md).

An audit releases two gradients many times and counts an event (audit_event.py). If a perturbation
is e-private, the chance of the event under one gradient is at most exp(e) times its chance under
the other. Bounds on both chances (loss_bounds.py) give a lower bound on e that holds with the
stated confidence: if it is above the claimed e, the claim is refuted.

Gradients are prepared by the market's `Release`. A first part of them also leaves it one by one, as
in a market, and has a bound of its own; the others are perturbed many at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.perturbation.perturbation import Perturbation, delta_of
from flmarket_sim.privacy.audit_event import AuditEvent, choose_event, worst_pairs
from flmarket_sim.privacy.loss_bounds import (
    chance_bounds,
    counts_if_tight,
    gaussian_bound,
    lower_bound,
    middle_counts,
)
from flmarket_sim.privacy.noise import create_noise
from flmarket_sim.privacy.release import Release
from flmarket_sim.randomness import Streams

Floats = NDArray[np.float64]
Hits = tuple[int, int]
Progress = Callable[[int, int], None]
BATCH = 10_000  # draws at a time
ELEMENTS = 2**23  # numbers of one batch in memory
ONE_BY_ONE = 2_000  # draws that leave as in a market
FEWEST_PILOT, MOST_PILOT = 2_000, 100_000
MOST_DRAWS = 10**10
PILOT = 1 << 32  # streams of the pilot are apart from those of batches


@dataclass(frozen=True)
class PrivacyClaim:
    """What is audited: gradients of `dimension` coordinates, released at `privacy_loss`."""

    privacy_loss: float
    dimension: int
    clip: float = 1.0
    noise: str = "simulation"
    seed: int = 0


@dataclass(frozen=True)
class Batch:
    """`count` draws from number `begin` on, of one of the two gradients of an event."""

    claim: PrivacyClaim
    event: AuditEvent
    first: bool
    begin: int
    count: int
    one_by_one: bool

    def hits(self, perturbation: Perturbation) -> Hits:
        """How many releases have the event, and how many are beyond the event's middle."""
        gradient = np.array(self.event.first if self.first else self.event.second)
        stream = 2 * self.begin + self.first
        found = [0, 0]
        rows = max(1, ELEMENTS // self.claim.dimension)
        for begin in range(0, self.count, rows):
            some = min(rows, self.count - begin)
            key = (stream, begin)
            sent = released(perturbation, self.claim, gradient, some, key, self.one_by_one)
            found = [a + b for a, b in zip(found, self.event.hits(sent), strict=True)]
        return found[0], found[1]


@dataclass(frozen=True)
class AuditResult:
    """`lower_bound` on the privacy loss at `confidence`; `passed` if no bound exceeds the claim.

    delta            of the promise; 0: pure
    market_bound     the bound from the `market_draws` that left one by one, as in a market
    gaussian_bound   a tighter one that holds for Gaussian noise only; None for other perturbations
    reach            about the bound that so many draws find if the claim is tight: an audit of few
                     draws cannot show much
    chances          the bounds on the two chances of the event
    """

    claimed: float
    delta: float
    lower_bound: float
    draws: int
    confidence: float
    reach: float
    market_bound: float
    market_draws: int
    gaussian_bound: float | None
    chances: tuple[float, float]

    @property
    def shown(self) -> float:
        """The largest of the bounds. Each of them holds with the confidence."""
        return max(self.lower_bound, self.market_bound, self.gaussian_bound or 0.0)

    @property
    def passed(self) -> bool:
        return self.shown <= self.claimed


def released(
    perturbation: Perturbation,
    claim: PrivacyClaim,
    gradient: Floats,
    count: int,
    key: Sequence[int],
    one_by_one: bool,
) -> Floats:
    """(count, D) what the market releases of one raw gradient (D,), each time to another owner."""
    seed = int(np.random.SeedSequence([claim.seed, *key]).generate_state(1, np.uint64)[0] >> 1)
    noise = create_noise(claim.noise, perturbation, claim.clip, Streams(seed))
    raw = np.tile(gradient, (count, 1))
    losses = [claim.privacy_loss] * count
    leaving = Release(raw, losses, perturbation, claim.clip, noise)
    if one_by_one or claim.noise != "simulation":
        return np.stack([leaving.leave(row, row, 0, 0) for row in range(count)])
    rng = np.random.default_rng([claim.seed, *key])
    sent = perturbation.release(leaving.prepared, np.array(losses), rng, claim.clip)
    return np.asarray(sent, np.float64)


def audit(
    perturbation: Perturbation,
    privacy_loss: float,
    dimension: int = 10,
    clip: float = 1.0,
    draws: int = 100_000,
    confidence: float = 0.999,
    seed: int = 0,
    noise: str = "simulation",
    one_by_one: int = ONE_BY_ONE,
    progress: Progress | None = None,
) -> AuditResult:
    """A lower bound on the privacy loss of a perturbation, from `draws` releases of each of two
    gradients, of which `one_by_one` leave as in a market."""
    claim = PrivacyClaim(privacy_loss, dimension, clip, noise, seed)
    batches = audit_batches(perturbation, claim, draws, one_by_one)
    hits = []
    for batch in batches:
        hits.append(batch.hits(perturbation))
        if progress is not None:
            progress(len(hits), len(batches))
    return audit_result(zip(batches, hits, strict=True), confidence, delta_of(perturbation))


def audit_batches(
    perturbation: Perturbation, claim: PrivacyClaim, draws: int, one_by_one: int = ONE_BY_ONE
) -> list[Batch]:
    """All draws of an audit, for both gradients. A pilot chooses the event if it must be found."""
    if not 0 < claim.privacy_loss < math.inf:
        raise InputError(
            f"the claimed privacy loss must be a number above 0 (got {claim.privacy_loss})"
        )
    if not 1 <= draws <= MOST_DRAWS:
        raise InputError(f"an audit takes between 1 and {MOST_DRAWS:,} draws (got {draws:,})")

    def draw(gradient: Floats, count: int, stream: int) -> Floats:
        return released(perturbation, claim, gradient, count, (PILOT, stream), False)

    pairs = worst_pairs(perturbation, claim.privacy_loss, claim.dimension, claim.clip)
    pilot = min(max(draws // 10, FEWEST_PILOT), MOST_PILOT)
    event = choose_event(pairs, delta_of(perturbation), draws, pilot, draw)
    alone = draws if claim.noise != "simulation" else min(one_by_one, draws)
    parts = [(0, alone, True)] if alone else []
    parts += [(alone, alone + draws, False)] if alone < draws else []
    return [
        Batch(claim, event, first, begin, min(BATCH, stop - begin), market)
        for start, stop, market in parts
        for begin in range(start, stop, BATCH)
        for first in (True, False)
    ]


def audit_result(
    counts: Iterable[tuple[Batch, Hits]], confidence: float, delta: float
) -> AuditResult:
    """What the batches of an audit show, each with its hits."""
    counts = sorted(counts, key=lambda pair: pair[0].one_by_one)
    claim, event = counts[0][0].claim, counts[0][0].event
    found = {}
    for market, group in groupby(counts, key=lambda pair: pair[0].one_by_one):
        found[market] = _sums(list(group))
    draws, likely, unlikely, *middle = found[min(found)]
    market_draws, *seen = found.get(True, (0, 0, 0, 0, 0))
    tight = counts_if_tight(likely, draws, claim.privacy_loss, delta)
    reach, gaussian = lower_bound(*tight, draws, confidence, delta), None
    if event.middle is not None:
        counted = middle_counts(draws, claim.privacy_loss, delta)
        reach = gaussian_bound(*counted, draws, confidence, delta)
        gaussian = gaussian_bound(middle[0], middle[1], draws, confidence, delta)
    return AuditResult(
        claim.privacy_loss,
        delta,
        lower_bound(likely, unlikely, draws, confidence, delta),
        draws,
        confidence,
        reach,
        lower_bound(seen[0], seen[1], market_draws, confidence, delta) if market_draws else 0.0,
        market_draws,
        gaussian,
        chance_bounds(likely, unlikely, draws, confidence),
    )


def _sums(counts: list[tuple[Batch, Hits]]) -> tuple[int, ...]:
    """Draws of each gradient; events of the first and of the second; the same beyond the middle."""
    draws = sum(batch.count for batch, _ in counts if batch.first)
    sums = [
        sum(hits[which] for batch, hits in counts if batch.first is first)
        for which in (0, 1)
        for first in (True, False)
    ]
    return draws, *sums
