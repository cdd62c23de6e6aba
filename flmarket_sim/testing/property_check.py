"""A check: it searches many markets for a violation, and judges one market by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from flmarket_sim.testing.auction_under_test import AuctionUnderTest
from flmarket_sim.testing.trial_markets import Floats, Markets
from flmarket_sim.testing.violating_market import ViolatingMarket

SAME = 1e-5  # of the buyer's money or of a privacy budget: networks compute in single precision


@dataclass(frozen=True)
class SearchResult:
    """The result of a search through K markets.

    violation  a number for each checked owner or market, 0 where the property holds
    cases      the markets that violate it, worst first
    message    what is wrong, where no single market can show it
    """

    violation: Floats
    cases: list[ViolatingMarket] = field(default_factory=list)
    message: str = ""


@dataclass(frozen=True)
class MeanOutcome:
    """One outcome of a market, (n,) each; the means of a lottery."""

    label: str
    loss: Floats
    payment: Floats


@dataclass(frozen=True)
class CaseJudgement:
    """The violation of one case (0: none), its outcomes, and a sentence about them."""

    violation: float
    views: tuple[MeanOutcome, ...] = ()
    story: str = ""


@dataclass(frozen=True)
class Check:
    """A property to check.

    name       as in `guarantees`
    statement  what it says
    unit       of a violation; empty if it has none
    """

    name: str
    statement: str
    unit: str
    find: Callable[[AuctionUnderTest, Markets], SearchResult]
    judge: Callable[[AuctionUnderTest, ViolatingMarket], CaseJudgement]


def worst(
    violation: Floats, markets: Markets, make: Callable[[int, int], ViolatingMarket], count: int = 3
) -> list[ViolatingMarket]:
    """Cases of the worst violations (K, n), one a market, `make(k, i)` each."""
    owner = violation.argmax(axis=1)
    height = violation.max(axis=1)
    order = np.argsort(-height, kind="stable")[:count]
    return [make(int(k), int(owner[k])) for k in order if height[k] > 0]


def view(label: str, means: tuple[Floats, Floats]) -> MeanOutcome:
    return MeanOutcome(label, *means)


def number(value: float, digits: int = 4) -> str:
    """A few digits; 0 for tiny values."""
    if abs(value) < 1e-5:
        return "0"
    return f"{value:.{digits}g}" if abs(value) < 10**digits else f"{value:.0f}"


def who(i: int) -> str:
    """Owners are numbered from 1 in texts."""
    return f"Owner {i + 1}"


def sold(view: MeanOutcome, i: int) -> str:
    """What an owner sells and gets, in words."""
    if view.loss[i] < 1e-12 and abs(view.payment[i]) < 1e-12:
        return "sells nothing"
    return f"sells {number(view.loss[i])} for {number(view.payment[i])}"
