"""OptAggr under constraints: caps, fairness between groups, few owners, a bounded bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.constrained_optimum import exact
from flmarket_sim.aggregation.constraint_limits import Box, Flags, Limits, box, least_bias, limits
from flmarket_sim.aggregation.convex_owners import (
    OneMarket,
    OwnerSymbols,
    in_unit_of,
    unconstrained,
)
from flmarket_sim.aggregation.convex_rule import ConvexRule
from flmarket_sim.aggregation.lazy_cvxpy import cvxpy
from flmarket_sim.aggregation.rule import Floats
from flmarket_sim.aggregation.sparse_support import supports
from flmarket_sim.errors import InputError

MOST_BIAS = 2.0  # sum |l - W| of any weights is at most this
MOST_TRIED = 32  # supports on which the whole problem is solved
KEPT = 1e-12  # how closely weights of a formula keep a limit


class Constrained(ConvexRule):
    """The least error bound under constraints: cap, fairness, sparsity, bias.

    cap         the largest weight of an owner, in (0, 1]
    fairness    the largest difference between two groups in their weight per data share,
                |L_1 / S_1 - L_2 / S_2|. L_g is the weight of group g, and S_g the share of its
                sellers in the records of all sellers. 0 gives each group the weight of its data
    groups      "size": the first group are the bidders with at most the median data size, the
                second one the others. Bidders of equal size are one group, and nothing is compared
    sparsity    at most so many owners carry a weight. The best support is found by comparing all
                of them where there are at most 5,000, otherwise by backward elimination and
                exchanges (`sparse_support.py`)
    bias        the largest sum_i |l_i - W_i| over all bidders, in (0, 2]: C times it bounds the
                norm of the bias

    What is not given does not constrain. A constraint that cannot be kept in a round, because few
    owners sell, gives way there as little as possible: the cap to 1 / owners with a weight, then
    fairness, then bias (`constraint_limits.py`). Weights that need no constraint come from the
    closed form of `opt-aggr`; all others from a solver, made exact by the KKT conditions where
    rounding allows it (`constrained_optimum.py`).
    """

    name = "constrained"

    def __init__(
        self,
        cap: float | None = None,
        fairness: float | None = None,
        groups: Literal["size"] = "size",
        sparsity: int | None = None,
        bias: float | None = None,
    ) -> None:
        _refuse("cap", cap, cap is None or 0 < cap <= 1, "above 0 and at most 1")
        _refuse("fairness", fairness, fairness is None or fairness >= 0, "at least 0")
        _refuse("groups", groups, groups == "size", "'size'")
        _refuse("sparsity", sparsity, sparsity is None or sparsity >= 1, "at least 1")
        _refuse("bias", bias, bias is None or 0 < bias <= MOST_BIAS, "above 0 and at most 2")
        if cap is not None and sparsity is not None and cap * sparsity < 1 - KEPT:
            raise InputError(
                f"aggregation rule 'constrained': {sparsity} owners with at most {cap} each cannot "
                f"have a weight of 1 together; raise cap to {1 / sparsity:.4g}, or sparsity to "
                f"{int(np.ceil(1 / cap))}"
            )
        self.cap = 1.0 if cap is None else float(cap)
        self.fairness = np.inf if fairness is None else float(fairness)
        self.sparsity = sparsity
        self.bias = MOST_BIAS if bias is None else float(bias)

    def problem(self, owners: OwnerSymbols) -> tuple[Any, Sequence[Any]]:
        cp = cvxpy()

        lower, upper, held, at = (
            owners.parameter(name, owners.n) for name in ("lower", "upper", "held", "at")
        )
        group, held_group = (
            owners.parameter(name, owners.n) @ owners.weight for name in ("group", "held_group")
        )
        low, high, group_at, bias = (
            owners.parameter(name) for name in ("low", "high", "group_at", "bias")
        )
        return owners.error_bound, [
            lower <= owners.weight,
            owners.weight <= upper,
            cp.multiply(held, owners.weight) == at,
            low <= group,
            group <= high,
            held_group == group_at,
            cp.norm1(owners.weight - owners.share) <= bias,
        ]

    def parameter_values(self, market: OneMarket) -> Mapping[str, ArrayLike]:
        """The box of the market. What is held at one number is an equation and no inequality."""
        limit = self._box(market)
        held = (limit.upper - limit.lower <= KEPT) & market.support
        group = self._first_group(market) & market.support
        loose = bool((held | ~group)[market.support].all() or (held | group)[market.support].all())
        tight = limit.high - limit.low <= KEPT and not loose
        free = loose or tight
        return {
            "lower": np.where(held | (limit.lower == 0), -1.0, limit.lower),
            "upper": np.where(held | ~market.support, 2.0, limit.upper),
            "held": held.astype(np.float64),
            "at": np.where(held, limit.upper, 0.0),
            "group": group.astype(np.float64),
            "held_group": group * float(tight),
            "low": -1.0 if free else limit.low,
            "high": 2.0 if free else limit.high,
            "group_at": limit.low * float(tight),
            "bias": min(limit.bias, 3.0),
        }

    def polished(self, market: OneMarket, weights: Floats) -> Floats:
        group, limit = self._first_group(market), self._box(market)
        found = exact(market, group, limit, weights)
        if found is None:
            found = exact(in_unit_of(market, weights), group, limit, weights)
        return weights if found is None else found

    def solved(self, markets: Sequence[OneMarket]) -> list[Floats]:
        if self.sparsity is not None:
            return [self._sparse(market, self.sparsity) for market in markets]
        found = [self._by_formula(market) for market in markets]
        unsolved = [k for k, market in enumerate(markets) if not self._keeps(market, found[k])]
        exact_weights = super().solved([markets[k] for k in unsolved])
        for k, weights in zip(unsolved, exact_weights, strict=True):
            found[k] = weights
        return found

    def _alone(self, market: OneMarket) -> Floats:
        """The solver's weights. Where it finds none, it is tried again in the unit of the weights
        with the least bias: constraints may force weights on owners whose noise is far beyond the
        least error. After that, the KKT conditions can do without a solver."""
        try:
            return super()._alone(market)
        except InputError:
            start = least_bias(market.share, self._first_group(market), self._box(market))
            scaled = in_unit_of(market, start)
        try:
            return super()._alone(scaled)
        except InputError:
            found = self.polished(scaled, start)
            if not self._keeps(market, found):
                raise
            return found

    def _sparse(self, market: OneMarket, k: int) -> Floats:
        """The best weights on the best of the supports that are tried, in order of their lower
        bounds; a support whose lower bound is above the best error so far ends the search."""

        def allowed(candidates: Flags) -> Limits:
            return self._limits(market, candidates)

        best, least = np.zeros_like(market.share), np.inf
        candidates, bounds = supports(market, k, allowed)
        for support, bound in list(zip(candidates, bounds, strict=True))[:MOST_TRIED]:
            if bound >= least * (1 - 1e-12):
                break
            part = market.among(support)
            weights = self._by_formula(part)
            if not self._keeps(part, weights):
                weights = super().solved([part])[0]
            error = part.error(weights) * part.least_error
            if error < least:
                best, least = weights, error
        return best

    def _by_formula(self, market: OneMarket) -> Floats:
        """(n,) the optimum without constraints, or the only weights that the cap allows."""
        members = market.support.sum()
        if self._box(market).upper.sum() <= 1 + KEPT:
            return np.asarray(market.support / members)
        return unconstrained(market)

    def _keeps(self, market: OneMarket, weights: Floats) -> bool:
        """Whether weights (n,) keep all limits of a market."""
        limit = self._box(market)
        group = weights[self._first_group(market)].sum()
        return bool(
            (weights <= limit.upper + KEPT).all()
            and (weights >= limit.lower - KEPT).all()
            and limit.low - KEPT <= group <= limit.high + KEPT
            and np.abs(weights - market.share).sum() <= limit.bias + KEPT
        )

    def _box(self, market: OneMarket) -> Box:
        limit = self._limits(market, market.support[None])
        return box(market.share, self._first_group(market), market.support, limit)

    def _limits(self, market: OneMarket, candidates: Flags) -> Limits:
        """(R,) the limits of weights on each candidate support (R, n)."""
        return limits(
            market.share,
            market.sells,
            self._first_group(market),
            candidates,
            self.cap,
            self.fairness,
            self.bias,
        )

    def _first_group(self, market: OneMarket) -> Flags:
        """(n,) the bidders with at most the median data size."""
        if np.isinf(self.fairness):
            return np.zeros(len(market.share), bool)
        return np.asarray(market.share <= np.median(market.share))


def _refuse(option: str, value: Any, right: bool, allowed: str) -> None:
    if not right:
        raise InputError(
            f"aggregation rule 'constrained': {option} must be {allowed}, got {value!r}"
        )
