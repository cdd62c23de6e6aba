"""Checks for authors of robust rules: does one keep the contract of
aggregation/robust/robust_rule.py?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.robust.robust_rule import (
    Breakdown,
    RobustRule,
    StatesBreakdown,
    combined,
)
from flmarket_sim.errors import ContractError
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import require_contract
from flmarket_sim.testing.complaints import complaints

Floats = NDArray[np.float64]
CLOSE = 1e-6  # relative to the longest message: rounding, and the end of an iteration
FAR = 1e9  # how far away cheats put their messages, in lengths of honest ones
CARRIED = 1e4  # honest lengths from which on a gradient counts as carried away
SHAPES = ((1, 1), (2, 3), (5, 1), (12, 4), (30, 60))
DRAWS = 200


class NotARobustRule(AssertionError):
    """A robust rule breaks its contract; the message has everything that is wrong."""


class Market:
    """Messages (n, D) of honest owners around `centre`, with weights and variances (n,)."""

    def __init__(self, n: int, dimension: int, *key: int) -> None:
        rng = np.random.default_rng([n, dimension, *key])
        self.variance = rng.uniform(0.5, 8.0, n)
        self.weights = rng.uniform(0.5, 1.5, n) / self.variance
        self.weights /= self.weights.sum()
        noise = rng.normal(size=(n, dimension)) * np.sqrt(self.variance / dimension)[:, None]
        self.centre = np.full(dimension, 2.0 / np.sqrt(dimension))
        self.messages = self.centre + noise
        self.rng = rng

    @property
    def longest(self) -> float:
        return float(np.sqrt(np.square(self.messages).sum(axis=1)).max())

    def by(self, rule: RobustRule, messages: Floats | None = None) -> Floats:
        messages = self.messages if messages is None else messages
        return combined(rule, messages.copy(), self.weights.copy(), self.variance.copy())

    def differs(self, one: Floats, other: Floats) -> bool:
        return bool(np.abs(one - other).max() > CLOSE * self.longest)


def form(rule: RobustRule) -> Iterator[str]:
    for shape in SHAPES:
        market = Market(*shape)
        arrays = (market.messages, market.weights, market.variance)
        before = [array.copy() for array in arrays]
        first = combined(rule, *arrays).copy()
        if any((a != b).any() for a, b in zip(arrays, before, strict=True)):
            yield "combine changes its arguments"
        if (first != market.by(rule)).any():
            yield "combine is not a function of its arguments: two calls give two gradients"


def unanimous(rule: RobustRule) -> Iterator[str]:
    for shape in SHAPES:
        market = Market(*shape)
        market.variance[:] = market.variance[0]
        same = np.tile(market.messages[0], (shape[0], 1))
        if market.differs(market.by(rule, same), same[0]):
            yield "where all messages are the same vector and equally noisy, another is delivered"


def order(rule: RobustRule) -> Iterator[str]:
    for shape in SHAPES:
        market = Market(*shape)
        mixed = market.rng.permutation(shape[0])
        turned = combined(
            rule, market.messages[mixed], market.weights[mixed], market.variance[mixed]
        )
        if market.differs(turned, market.by(rule)):
            yield "the gradient depends on the order of the sellers"


def no_weight(rule: RobustRule) -> Iterator[str]:
    for shape in SHAPES:
        market = Market(*shape)
        row = int(market.weights.argmax())
        market.weights[row] = 0.0
        if shape[0] == 1:
            continue
        market.weights /= market.weights.sum()
        others = market.messages.copy()
        others[row] = -3.0 * others[row] - 1.0
        if market.differs(market.by(rule), market.by(rule, others)):
            yield "a message of weight 0 counts"


def honest(rule: RobustRule) -> Iterator[str]:
    """The part of the common gradient that is delivered, in the mean over many honest markets."""
    parts = []
    for draw in range(DRAWS):
        market = Market(9, 20, draw)
        parts.append(market.by(rule) @ market.centre / (market.centre @ market.centre))
    mean, error = float(np.mean(parts)), float(np.std(parts) / DRAWS**0.5)
    if not 0.5 - 5 * error <= mean <= 1.5 + 5 * error:
        yield (
            f"where everybody is honest, the delivered gradient has {mean:.2f} of the common one "
            "on average; it must have 0.5 to 1.5"
        )


def large(rule: RobustRule) -> Iterator[str]:
    market = Market(12, 4)
    for size in (1e-100, 1e90):
        try:
            market.by(rule, market.messages * size)
        except ContractError as error:
            yield f"of messages of the size {size:g}: {error}"


def breakdown(rule: RobustRule) -> Iterator[str]:
    """Cheats with as many votes as the rule says that it withstands, and three things they do."""
    if not isinstance(rule, StatesBreakdown):
        return
    for shape in SHAPES:
        market = Market(*shape)
        stated: Any = rule.breakdown(market.weights, market.variance)
        votes = np.asarray(stated.votes)
        if not isinstance(stated, Breakdown) or votes.shape != (shape[0],) or (votes < 0).any():
            yield "breakdown must give a Breakdown with votes (n,) of at least 0, and a share"
            return
        if not 0 <= stated.share <= 1 or not votes.sum() > 0:
            yield "breakdown must give a share from 0 to 1, and some votes"
            return
        reached = np.cumsum(np.sort(votes)) / votes.sum()
        cheats = np.argsort(votes, kind="stable")[: int((reached < stated.share - CLOSE).sum())]
        length = FAR * market.longest
        apart = market.rng.normal(size=(len(cheats), shape[1]))
        for lie in (np.full((len(cheats), shape[1]), length), apart * length, -apart * length**2):
            messages = market.messages.copy()
            messages[cheats] = lie
            result = market.by(rule, messages)
            if np.sqrt(np.square(result).sum()) > CARRIED * market.longest:
                yield (
                    f"it says that it withstands less than {stated.share:g} of the votes, but "
                    f"{len(cheats)} of {shape[0]} messages with fewer carry the gradient away"
                )


Check = Callable[[RobustRule], Iterator[str]]
CHECKS: dict[str, Check] = {
    "form": form,
    "unanimous": unanimous,
    "order": order,
    "no weight": no_weight,
    "honest": honest,
    "large": large,
    "breakdown": breakdown,
}


def check_robust_rule(rule: Any, only: Sequence[str] = tuple(CHECKS)) -> None:
    """Tries a robust rule on small markets. It is an instance, a class, a name or "module:Class".

    Raises NotARobustRule with all complaints. The checks, of which `only` names some:

    form         `combine` gives one finite float64 vector, the same one each time, and leaves its
                 arguments alone
    unanimous    messages of equal noise that are all the same vector become that vector
    order        the order of the sellers does not matter
    no weight    a message of weight 0 does not count
    honest       where everybody is honest, the common gradient is delivered, not much shorter or
                 longer on average
    large        numbers from 1e-100 to 1e90 can be combined
    breakdown    cheats with fewer votes than the rule says it withstands do not carry it away

    What is not refused is not proven: only three attacks are tried.
    """
    made: Any = registry.robust_rules.create(rule) if isinstance(rule, str) else rule
    made = made() if isinstance(made, type) else made
    kind = registry.robust_rules
    require_contract(type(made), type(made).__name__, kind.kind, kind.needs)
    listed = complaints(CHECKS, only, made)
    if listed:
        raise NotARobustRule(f"the robust rule {made.name!r} breaks its contract:\n{listed}")
