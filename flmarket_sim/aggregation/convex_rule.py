"""Rules that are written as a convex problem: an objective and constraints in cvxpy.

An author derives a class from `ConvexRule`, gives it a name, and writes the problem once, with the
symbols of `OwnerSymbols`:

    class Capped(ConvexRule):
        name = "capped"

        def problem(self, owners):
            return owners.error_bound, [owners.weight <= 0.3]

The problem is compiled once for each number of owners and solved for one market after the other.
cvxpy is imported when the first problem is compiled, and not before.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flmarket_sim.aggregation.convex_owners import OneMarket, OwnerSymbols, one_market
from flmarket_sim.aggregation.lazy_cvxpy import cvxpy
from flmarket_sim.aggregation.rule import Floats, check_inputs, data_shares, noise_and_radius
from flmarket_sim.errors import ContractError, InputError, shown

TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12} | {
    "reduced_tol_gap_abs": 1e-8,
    "reduced_tol_gap_rel": 1e-8,
    "reduced_tol_feas": 1e-8,
}
STACK = 16  # markets of one stacked problem
WORTH_STACKING = 128  # markets: below, compiling a stack takes longer than it saves
LARGEST_STACKED = 50  # owners of a market: above, the solver takes most of the time, not cvxpy
GAVE_UP = "solver error"
SOLVED = ("optimal", "optimal_inaccurate")
WHAT_TO_DO = {
    "infeasible": "no weights satisfy its constraints there; loosen them, or let them depend on "
    "how many owners sell (`owners.sells`)",
    "unbounded": "its objective has no least value; check its sign",
}
OTHERWISE = (
    "the solver gave up; try another `solver` or other `solver_options`, or write the problem so "
    "that its numbers have a similar size"
)


class ConvexRule:
    """Base of rules that are written as a convex problem.

    A derived class has a `name` and `problem`. It may have `parameter_values`, which gives numbers
    to parameters of its own, and `polished`, which improves on what the solver found. `solver` and
    `solver_options` go to cvxpy; by default Clarabel solves to a tolerance of 1e-12. Where a solver
    gives up it is tried again with its own tolerances, which are 1e-8 for Clarabel.

    Every market is solved from a cold start. An interior-point solver gains little by a warm one,
    and weights must not depend on the markets that were solved before: a run that was stopped and
    continued has to end with the same bytes.
    """

    name: str
    solver: str = "CLARABEL"
    solver_options: Mapping[str, Any] = TIGHT

    def problem(self, owners: OwnerSymbols) -> tuple[Any, Sequence[Any]]:
        """The objective and the constraints beside those of every rule (`OwnerSymbols.weight`).

        The objective is `cvxpy.Minimize`, `cvxpy.Maximize`, or an expression to minimise. The
        problem must be DPP: convex, with no product of two parameters.
        """
        raise ContractError(f"aggregation rule {self.name!r} has no method `problem`")

    def parameter_values(self, market: OneMarket) -> Mapping[str, ArrayLike]:
        """The numbers of the rule's own parameters (`OwnerSymbols.parameter`) in a market."""
        return {}

    def polished(self, market: OneMarket, weights: Floats) -> Floats:
        """(n,) weights (n,) of the solver, made more accurate if the rule knows how."""
        return weights

    def weights(
        self,
        privacy_loss: ArrayLike,
        data_size: ArrayLike,
        clip: float = 1.0,
        variance: ArrayLike | None = None,
    ) -> Floats:
        """(K, n) the weights. An owner who sells alone has the whole weight, without a solve."""
        loss, size = check_inputs(privacy_loss, data_size, clip)
        noise, radius = noise_and_radius(variance, loss, clip)
        share = data_shares(size)
        sells = loss > 0
        sellers = sells.sum(axis=1)
        found = np.where(sellers[:, None] == 0, share, sells.astype(np.float64))
        markets = [
            one_market(int(k), share[k], noise[k], sells[k], float(radius[k]))
            for k in np.flatnonzero(sellers > 1)
        ]
        for market, weight in zip(markets, self.solved(markets), strict=True):
            found[market.number] = weight
        return found

    def solved(self, markets: Sequence[OneMarket]) -> list[Floats]:
        """The weights (n,) of each market, all of the same number of owners."""
        found: list[Floats] = []
        if not markets:
            return found
        n = len(markets[0].share)
        stack = STACK if len(markets) >= WORTH_STACKING and n <= LARGEST_STACKED else 1
        for start in range(0, len(markets), stack):
            together = markets[start : start + stack]
            weights = self._compiled_for(n, stack).solve(together) if stack > 1 else None
            found += weights or [self._alone(market) for market in together]
        return [
            self.polished(market, clean(market, weight))
            for market, weight in zip(markets, found, strict=True)
        ]

    def _alone(self, market: OneMarket) -> Floats:
        compiled = self._compiled_for(len(market.share), 1)
        weights = compiled.solve([market])
        if weights is None:
            raise InputError(
                f"aggregation rule {self.name!r}: no weights for market {market.number} "
                f"({int(market.sells.sum())} of {len(market.sells)} owners sell): {self.solver} "
                f"says '{compiled.status}'. {explained(compiled.status).capitalize()}"
            )
        return weights[0]

    def _compiled_for(self, n: int, stack: int) -> CompiledProblem:
        if (n, stack) not in self._compiled:
            self._compiled[n, stack] = CompiledProblem(self, n, stack)
        return self._compiled[n, stack]

    @cached_property
    def _compiled(self) -> dict[tuple[int, int], CompiledProblem]:
        return {}


class CompiledProblem:
    """The problem of a rule for `stack` markets of n owners at once, compiled by cvxpy.

    The sum of the objectives of independent markets is least where each of them is. A stack of
    small markets saves most of the time that cvxpy takes around the solver.
    """

    def __init__(self, rule: ConvexRule, n: int, stack: int) -> None:
        cp = cvxpy()

        self._rule = rule
        self._blocks = [OwnerSymbols(n) for _ in range(stack)]
        parts = [parts_of(rule, block) for block in self._blocks]
        constraints = [constraint for _, own in parts for constraint in own]
        self._problem: Any = cp.Problem(sum(part for part, _ in parts), constraints)
        self.status = "unsolved"
        check_form(rule.name, self._problem)

    def solve(self, markets: Sequence[OneMarket]) -> list[Floats] | None:
        """The solver's weights (n,) of each market; None if it found none, see `status`."""
        rule = self._rule
        filled = list(markets) + [markets[-1]] * (len(self._blocks) - len(markets))
        for block, market in zip(self._blocks, filled, strict=True):
            block.take(market, rule.parameter_values(market), rule.name)
        self.status = self._solve(rule.solver_options)
        if self.status == GAVE_UP:  # rare, and mostly a matter of the last digits
            self.status = self._solve({})
        if self.status not in SOLVED:
            return None
        return [np.asarray(block.weight.value) for block in self._blocks[: len(markets)]]

    def _solve(self, options: Mapping[str, Any]) -> str:
        """Solves the problem with its present numbers, and returns cvxpy's status."""
        try:
            with warnings.catch_warnings():  # the options say what is accurate enough
                warnings.filterwarnings("ignore", "Solution may be inaccurate")
                self._problem.solve(solver=self._rule.solver, warm_start=False, **options)
        except cvxpy().error.SolverError as error:
            return GAVE_UP if "failed" in str(error) else str(error)
        return str(self._problem.status)


def parts_of(rule: ConvexRule, owners: OwnerSymbols) -> tuple[Any, list[Any]]:
    """The objective and all constraints of a rule for one market."""
    cp = cvxpy()

    parts = rule.problem(owners)
    if not (isinstance(parts, tuple) and len(parts) == 2 and isinstance(parts[1], Sequence)):
        raise ContractError(
            f"aggregation rule {rule.name!r}: `problem` must return an objective and a list of "
            f"constraints, got {shown(parts)}"
        )
    objective, constraints = parts
    if not isinstance(objective, cp.Minimize | cp.Maximize):
        objective = cp.Minimize(objective)
    return objective, [*owners.contract(), *constraints]


def check_form(rule: str, problem: Any) -> None:
    """Refuses a problem that is not convex, or that cvxpy would have to compile for each market."""
    if problem.is_dcp(dpp=True):
        return
    if problem.is_dcp():
        raise ContractError(
            f"aggregation rule {rule!r}: its problem is convex but not DPP, so that it would be "
            "compiled for every market anew. A parameter may multiply a variable, but not another "
            "parameter: make the product a parameter of its own (`owners.parameter`), or use "
            "`owners.bias`, `owners.variance` and `owners.error_bound`"
        )
    wrong = [f"the objective {problem.objective}"] if not problem.objective.is_dcp() else []
    wrong += [f"the constraint {part}" for part in problem.constraints if not part.is_dcp()]
    raise ContractError(
        f"aggregation rule {rule!r}: its problem does not follow cvxpy's rules for convex "
        f"problems (DCP): {'; '.join(wrong)[:500]}"
    )


def clean(market: OneMarket, weights: Floats) -> Floats:
    """(n,) weights without the rounding of a solver: at least 0, a sum of 1, none for losers."""
    kept = np.where(market.support, np.maximum(weights, 0.0), 0.0)
    return np.asarray(kept / kept.sum())


def explained(status: str) -> str:
    """What an author or a user can do about a problem without a solution."""
    return next((text for key, text in WHAT_TO_DO.items() if key in status), OTHERWISE)
