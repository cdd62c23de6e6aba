"""Shrinking of counterexamples: fewer owners, fewer levels and rounder numbers, while at least half
of the violation remains."""

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
REMAINS = 0.5  # of the violation
LITTLE = 1e-6  # of the money


class _Budget:
    """Judges attempts until their number is used up.

    An attempt counts only if rounding plays no part: no two owners may become alike, and slightly
    more or less money must show the violation too. A market that the auction refuses is not a
    counterexample.
    """

    def __init__(self, violation: Violation, case: ViolatingMarket, attempts: int) -> None:
        self.violation, self.floor, self.left = violation, REMAINS * violation(case), attempts
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
    """The smallest and roundest case found. It is never larger than the given one."""
    budget = _Budget(violation, case, attempts)
    for step in (
        _fewer_owners,
        _levels,
        _sizes,
        _simpler_misreport,
        _numbers,
        _simpler_misreport,
        _fewer_owners,
        _numbers,
    ):
        case = step(case, budget)
    return case


def _fewer_owners(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Leaves owners out one by one, with the same money or less."""
    shorter = True
    while shorter and case.n > 1:
        shorter = False
        for j in reversed(range(case.n)):
            if j == case.owner:
                continue
            attempt = case.without(j)
            share = float(attempt.truth.total_value()[0] / case.truth.total_value()[0])
            options = (attempt, replace(attempt, money=case.money * share))
            smaller = next((option for option in options if budget.persists(option)), None)
            if smaller is not None:
                case, shorter = smaller, True
                break
    return case


def _levels(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Fewer levels, unless the violation grows much: then the coarse bids would be the cause."""
    for levels in (1, 2, 4):
        if levels < case.levels and case.levels % levels == 0:
            misreport = case.misreport and replace(
                case.misreport,
                factor=case.misreport.factor[case.levels // levels - 1 :: case.levels // levels],
            )
            attempt = replace(case, levels=levels, misreport=misreport)
            if budget.persists(attempt) and budget.violation(attempt) <= 2 * budget.floor / REMAINS:
                return attempt
    return case


def _sizes(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Divides all records and the money by one number."""
    for part in (1.0, 0.1, 0.03):
        divisor = max(1.0, float(case.truth.data_size.min()) / part, 1.0)
        family, rate, privacy_budget, size = columns(case.truth)
        smaller = Profiles(family, rate, privacy_budget, np.maximum(np.round(size / divisor), 1.0))
        attempt = replace(case, truth=smaller, money=case.money / divisor)
        if divisor > 1 and budget.persists(attempt):
            return attempt
    return case


def _numbers(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Rounds every number of the market as far as possible, one after the other."""
    for i in range(case.n):
        if case.truth.family[0, i] not in (LINEAR, STEP):
            case = _first(case, budget, iter([_with(case, 0, i, LINEAR)]))
        for column in (1, 2, 3):
            old = float(columns(case.truth)[column][0, i])
            rounder = (_with(case, column, i, value) for value in _rounder(old, whole=column == 3))
            case = _first(case, budget, rounder)
    return _first(case, budget, (replace(case, money=money) for money in _rounder(case.money)))


def _simpler_misreport(case: ViolatingMarket, budget: _Budget) -> ViolatingMarket:
    """Makes the misreport true where possible, then the same factor at all levels, then rounder."""
    if case.misreport is None:
        return case
    misreport, same = case.misreport, (1.0,) * case.levels
    case = _first(case, budget, (replace(case, misreport=t) for t in _plainer(misreport, same)))
    for name in ("budget_share", "size_share"):
        assert case.misreport is not None
        misreport = case.misreport
        if (old := getattr(misreport, name)) < 1.0:
            rounder = (
                replace(case, misreport=replace(misreport, **{name: share}))  # type: ignore
                for share in _rounder(old)
                if share <= 1.0
            )
            case = _first(case, budget, rounder)
    assert case.misreport is not None
    if set(case.misreport.factor) == set(same):
        return case
    factors = [case.misreport.factor[-1]] if len(set(case.misreport.factor)) == 1 else []
    flat = (
        replace(case, misreport=replace(case.misreport, factor=(f,) * case.levels))
        for old in factors
        for f in (0.0, *_rounder(old))
    )
    case = _first(case, budget, flat)
    assert case.misreport is not None
    if len(set(case.misreport.factor)) > 1:
        digits = (tuple(_rounded(f, d) for f in case.misreport.factor) for d in (1, 2, 3))
        case = _first(
            case,
            budget,
            (replace(case, misreport=replace(case.misreport, factor=f)) for f in digits),
        )
    return case


def _plainer(misreport: RelativeMisreport, same: tuple[float, ...]) -> Iterator[RelativeMisreport]:
    flat = (misreport.factor[-1],) * len(same)
    for factor in dict.fromkeys((same, flat, misreport.factor)):
        for budget_share, size_share in dict.fromkeys(
            (
                (1.0, 1.0),
                (misreport.budget_share, 1.0),
                (1.0, misreport.size_share),
                (misreport.budget_share, misreport.size_share),
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
    """1, then the value at one, two and three digits; only values that are rounder."""
    seen = [value]
    for candidate in (1.0, *(_rounded(value, digits) for digits in (1, 2, 3))):
        if candidate not in seen and candidate > 0 and (not whole or candidate == int(candidate)):
            seen.append(candidate)
            yield candidate
