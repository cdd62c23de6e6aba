"""Counterexamples made small: fewer owners, fewer levels, rounder numbers, as long as the violation
stays at least half as large."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from flmarket_sim.errors import FlmarketError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.valuation import LINEAR, STEP
from flmarket_sim.testing.trial_markets import columns
from flmarket_sim.testing.violating_market import RelativeMisreport, ViolatingMarket, tied

Violation = Callable[[ViolatingMarket], float]
ATTEMPTS = 600
KEPT = 0.5  # of the violation
LITTLE = 1e-6  # of the money


class _Budget:
    """Judges attempts until their number is used up.

    An attempt counts only if rounding has no part in it: no two owners may have become alike, and a
    little more or less money must show the violation too. A market that the auction refuses is no
    counterexample.
    """

    def __init__(self, violation: Violation, case: ViolatingMarket, attempts: int) -> None:
        self.violation, self.floor, self.left = violation, KEPT * violation(case), attempts
        self.may_tie = _tied(case)

    def persists(self, case: ViolatingMarket) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        try:
            if self.violation(case) < self.floor or (_tied(case) and not self.may_tie):
                return False
            return all(
                self.violation(replace(case, money=case.money * near)) >= self.floor
                for near in (1 - LITTLE, 1 + LITTLE)
            )
        except FlmarketError:
            return False


def _tied(case: ViolatingMarket) -> bool:
    return bool(tied(case.bids(), "unit", "full_value")[0])


def shrink(
    violation: Violation, case: ViolatingMarket, attempts: int = ATTEMPTS
) -> ViolatingMarket:
    """The smallest and roundest case found from this one. Never larger; the case itself if nothing
    can be left out."""
    budget = _Budget(violation, case, attempts)
    for step in (_fewer_owners, _levels, _sizes, _told, _numbers, _told, _fewer_owners, _numbers):
        case = step(case, budget)
    return case


def _fewer_owners(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Owners are left out one by one, with the money as it is or with less."""
    shorter = True
    while shorter and case.n > 1:
        shorter = False
        for j in reversed(range(case.n)):
            if j == case.owner:
                continue
            attempt = case.without(j)
            share = float(attempt.truth.total_value()[0] / case.truth.total_value()[0])
            options = (attempt, replace(attempt, money=case.money * share))
            kept = next((option for option in options if budget.persists(option)), None)
            if kept is not None:
                case, shorter = kept, True
                break
    return case


def _levels(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Fewer levels, unless that makes the violation much larger: then the coarse bids would be what
    is shown."""
    for levels in (1, 2, 4):
        if levels < case.levels and case.levels % levels == 0:
            told = case.told and replace(
                case.told,
                factor=case.told.factor[case.levels // levels - 1 :: case.levels // levels],
            )
            attempt = replace(case, levels=levels, told=told)
            if budget.persists(attempt) and budget.violation(attempt) <= 2 * budget.floor / KEPT:
                return attempt
    return case


def _sizes(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """All records and the money divided by one number."""
    for part in (1.0, 0.1, 0.03):
        divisor = max(1.0, float(case.truth.data_size.min()) / part, 1.0)
        family, rate, privacy_budget, size = columns(case.truth)
        smaller = Profiles(family, rate, privacy_budget, np.maximum(np.round(size / divisor), 1.0))
        attempt = replace(case, truth=smaller, money=case.money / divisor)
        if divisor > 1 and budget.persists(attempt):
            return attempt
    return case


def _numbers(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Every number of the market, one after the other, as round as it can be."""
    for i in range(case.n):
        if case.truth.family[0, i] not in (LINEAR, STEP):
            case = _first(case, budget, iter([_with(case, 0, i, LINEAR)]))
        for column in (1, 2, 3):
            old = float(columns(case.truth)[column][0, i])
            rounder = (_with(case, column, i, value) for value in _rounder(old, whole=column == 3))
            case = _first(case, budget, rounder)
    return _first(case, budget, (replace(case, money=money) for money in _rounder(case.money)))


def _told(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """The lie: true where it need not be false, then one factor for all levels, then rounder."""
    if case.told is None:
        return case
    told, same = case.told, (1.0,) * case.levels
    case = _first(case, budget, (replace(case, told=t) for t in _plainer(told, same)))
    for name in ("budget_share", "size_share"):
        assert case.told is not None
        told = case.told
        if (old := getattr(told, name)) < 1.0:
            rounder = (
                replace(case, told=replace(told, **{name: share}))  # type: ignore[arg-type]
                for share in _rounder(old)
                if share <= 1.0
            )
            case = _first(case, budget, rounder)
    assert case.told is not None
    if set(case.told.factor) == set(same):
        return case
    factors = [case.told.factor[-1]] if len(set(case.told.factor)) == 1 else []
    flat = (
        replace(case, told=replace(case.told, factor=(f,) * case.levels))
        for old in factors
        for f in (0.0, *_rounder(old))
    )
    case = _first(case, budget, flat)
    assert case.told is not None
    if len(set(case.told.factor)) > 1:
        digits = (tuple(_rounded(f, d) for f in case.told.factor) for d in (1, 2, 3))
        case = _first(
            case, budget, (replace(case, told=replace(case.told, factor=f)) for f in digits)
        )
    return case


def _plainer(told: RelativeMisreport, same: tuple[float, ...]) -> Iterator[RelativeMisreport]:
    flat = (told.factor[-1],) * len(same)
    for factor in dict.fromkeys((same, flat, told.factor)):
        for budget_share, size_share in dict.fromkeys(
            (
                (1.0, 1.0),
                (told.budget_share, 1.0),
                (1.0, told.size_share),
                (told.budget_share, told.size_share),
            )
        ):
            if (factor, budget_share, size_share) != (same, 1.0, 1.0):
                yield RelativeMisreport(factor, budget_share, size_share)


def _first(
    case: ViolatingMarket, budget: _Budget, attempts: Iterator[ViolatingMarket]
) -> ViolatingMarket:
    return next((attempt for attempt in attempts if budget.persists(attempt)), case)


def _with(case: ViolatingMarket, column: int, i: int, value: float) -> ViolatingMarket:
    changed = [np.array(part) for part in columns(case.truth)]
    changed[column][0, i] = value
    return replace(case, truth=Profiles(*changed))


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}") if value else 0.0


def _rounder(value: float, whole: bool = False) -> Iterator[float]:
    """1, then the value at one, two and three digits, plainest first; nothing that is not plainer."""
    seen = [value]
    for candidate in (1.0, *(_rounded(value, digits) for digits in (1, 2, 3))):
        if candidate not in seen and candidate > 0 and (not whole or candidate == int(candidate)):
            seen.append(candidate)
            yield candidate
