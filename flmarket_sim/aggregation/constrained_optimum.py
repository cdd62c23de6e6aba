"""From a solver's weights to the exact optimum under constraints, with a proof that it is one.

The problem is to minimise sum_i l_i^2 V_i + C^2 t^2 with t = sum_i |l_i - W_i|, where the weights
sum to 1, lower_i <= l_i <= upper_i, the weight of the first group lies in [low, high], and
t <= bias. Its KKT conditions leave three numbers: p, half the price of a unit of t, and q_g, half
the worth of a unit of weight in each of the two groups g:

    l_i = min(upper_i, max(lower_i, (q_g - p) / V_i, min(W_i, (q_g + p) / V_i)))

    the weights sum to 1;
    q_1 = q_2, or the first group is at `low` (q_1 >= q_2) or at `high` (q_1 <= q_2);
    p = C^2 t, or t = bias (p >= C^2 t).

At a given p the weight of a group grows with q_g and is linear between breakpoints, so q_g is found
exactly. As p grows t falls, so p is the root of an increasing function. A solver's weights say
which limits to try first. The problem is convex, so weights that satisfy all conditions are the
optimum. Without constraints this is the formula of `opt_aggr.py`, with u = q - p and v = q + p.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from flmarket_sim.aggregation.constraint_limits import Box, Flags
from flmarket_sim.aggregation.convex_owners import OneMarket
from flmarket_sim.aggregation.rule import Floats

STEPS = 200
TINY = 4e-16
ROUNDING = 1e-12
NEAR = 1e-6  # a solver's weights that are so close to a limit are tried at the limit first
SLACK = 1e-11  # of a limit, for sums of rounding
HIGHEST = 1e15  # price of bias


class Conditions:
    """The KKT conditions of one market, for a choice of which limits hold with equality.

    at_group    the weight at which the first group is held, or None
    at_bias     whether t is held at its limit
    """

    def __init__(
        self,
        market: OneMarket,
        first_group: Flags,
        limit: Box,
        at_group: float | None,
        at_bias: bool,
    ) -> None:
        chosen = market.support
        self.share, self.first = market.share[chosen], first_group[chosen]
        self.variance = np.square(market.deviation[chosen])
        self.lower, self.upper = limit.lower[chosen], limit.upper[chosen]
        self.lost = float(market.share[~chosen].sum())
        self.pull = market.scaled_radius**2
        self.limit, self.at_group, self.at_bias = limit, at_group, at_bias
        everybody = np.ones(len(self.share), bool)
        self.parts = (
            [(everybody, 1.0)]
            if at_group is None
            else [(self.first, at_group), (~self.first, 1.0 - at_group)]
        )

    def at_price(self, p: float) -> Floats:
        """The weights of the support if p is the price of bias."""
        weights = np.zeros_like(self.share)
        for members, total in self.parts:
            if members.any():
                q = self._worth(p, members, total, self._breaks(p, members))
                weights[members] = self._weights(p, q, members)
        return weights

    def _weights(self, p: float, q: float, members: Flags) -> Floats:
        variance, share = self.variance[members], self.share[members]
        free = np.maximum((q - p) / variance, np.minimum(share, (q + p) / variance))
        return np.asarray(np.clip(free, self.lower[members], self.upper[members]))

    def _breaks(self, p: float, members: Flags) -> Floats:
        """The values of q at which the slope of a member's weight changes, in ascending order."""
        variance = self.variance[members]
        bends = [variance * a[members] for a in (self.share, self.lower, self.upper)]
        return np.sort(np.concatenate([bend + p * end for bend in bends for end in (-1, 1)]))

    def _worth(self, p: float, members: Flags, total: float, breaks: Floats) -> float:
        """The least q at which these members have this weight together."""
        low, high = 0, len(breaks) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._weights(p, breaks[middle], members).sum() < total:
                low = middle
            else:
                high = middle
        before, after = (float(self._weights(p, breaks[at], members).sum()) for at in (low, high))
        if after <= before or total <= before:
            return float(breaks[low] if total <= before else breaks[high])
        part = min((total - before) / (after - before), 1.0)
        return float(breaks[low] + part * (breaks[high] - breaks[low]))

    def distance(self, p: float) -> float:
        """t at a price of bias."""
        return float(np.abs(self.at_price(p) - self.share).sum()) + self.lost

    def price(self, near: float) -> float | None:
        """The price of bias p at which its equation holds, looked for near a solver's; or None."""
        if not self.at_bias:
            return root(lambda p: p - self.pull * self.distance(p), near, 0.0, 2.0 * self.pull)
        low = high = self.pull * self.limit.bias
        while self.distance(high) > self.limit.bias + ROUNDING:
            low, high = high, 4.0 * high
            if high > HIGHEST:
                return None
        return root(lambda p: self.limit.bias - self.distance(p), low, low, high)

    def optimum(self, bias: float) -> Floats | None:
        """The weights of the support if they satisfy all conditions, or None; `bias` is a solver's
        t."""
        p = self.price(self.pull * bias)
        if p is None:
            return None
        weights = self.at_price(p)
        t = float(np.abs(weights - self.share).sum()) + self.lost
        small = 1e3 * ROUNDING * (1.0 + p)
        prices = p >= self.pull * t - small and (self.at_bias or p <= self.pull * t + small)
        group, limit = float(weights[self.first].sum()), self.limit
        inside = limit.low - SLACK <= group <= limit.high + SLACK and t <= limit.bias + SLACK
        whole = abs(float(weights.sum()) - 1.0) <= SLACK
        return weights if prices and inside and whole and self._pushed(p, small) else None

    def _pushed(self, p: float, small: float) -> bool:
        """Whether the group that is held at an end would go beyond it if it were free."""
        if self.at_group is None or self.limit.low == self.limit.high:
            return True
        (least, most), (least_other, most_other) = (
            [
                self._worth(p, members, total + slack, self._breaks(p, members))
                for slack in (-ROUNDING, ROUNDING)
            ]
            for members, total in self.parts
        )
        if self.at_group == self.limit.low:
            return most >= least_other - small
        return least <= most_other + small


def exact(market: OneMarket, first_group: Flags, limit: Box, weights: Floats) -> Floats | None:
    """(n,) the optimum under the limits, from a solver's weights (n,); None if it is not found."""
    group = float(weights[first_group].sum())
    bias = float(np.abs(weights - market.share).sum())
    ends = sorted({limit.low, limit.high}, key=lambda end: abs(end - group))
    groups: list[float | None] = [None, *ends]
    if abs(ends[0] - group) < NEAR:
        groups = [ends[0], None, *ends[1:]]
    if not (market.support & first_group).any() or not (market.support & ~first_group).any():
        groups = [None]
    near = abs(limit.bias - bias) < NEAR
    biases = (near, not near) if np.isfinite(limit.bias) else (False,)
    for at_group, at_bias in product(groups, biases):
        found = Conditions(market, first_group, limit, at_group, at_bias).optimum(bias)
        if found is not None:
            everybody = np.zeros_like(weights)
            everybody[market.support] = found
            return everybody
    return None


def root(function: Callable[[float], float], near: float, low: float, high: float) -> float:
    """The root of an increasing function, linear on pieces, between two ends (Illinois method).

    `near` is a guess. If the function changes its sign close to it, the search starts there.
    """
    close = NEAR * max(near, high - low)
    if low < near - close < near + close < high and function(near - close) < 0:
        low, high = near - close, near + close if function(near + close) > 0 else high
    at_low, at_high = function(low), function(high)
    if at_low >= 0:
        return low
    if at_high <= 0:
        return high
    for _ in range(STEPS):
        middle = high - at_high * (high - low) / (at_high - at_low)
        if not low < middle < high:
            return low if -at_low < at_high else high
        value = function(middle)
        if abs(value) <= TINY * max(1.0, high) or high - low <= TINY * high:
            return middle
        if value < 0:
            low, at_low, at_high = middle, value, 0.5 * at_high
        else:
            high, at_high, at_low = middle, value, 0.5 * at_low
    return middle
