"""The owners of a market as an author of a convex rule sees them: as numbers, and as cvxpy symbols.

`OneMarket` has the numbers of one market. `OwnerSymbols` has the symbols of any market of n owners:
the weights that a solver looks for, and parameters that take the numbers of one market after the
other.
A problem that is written with these symbols is compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.lazy_cvxpy import cvxpy
from flmarket_sim.aggregation.opt_aggr import solve
from flmarket_sim.aggregation.rule import Floats
from flmarket_sim.errors import ContractError


@dataclass(frozen=True)
class OneMarket:
    """The numbers of one market of n owners.

    number         its row in the batch
    share          (n,) W: shares of the records of all bidders, losers included
    variance       (n,) V: variance of what each owner releases, infinite where she sells nothing
    sells          (n,) who sells something
    support        (n,) who may have a weight: all who sell, or some of them
    radius         C: the largest norm of a gradient
    least_error    the error bound of `opt-aggr` among those who may have a weight; errors are
                   measured in units of it
    """

    number: int
    share: Floats
    variance: Floats
    sells: NDArray[np.bool_]
    support: NDArray[np.bool_]
    radius: float
    least_error: float

    @property
    def deviation(self) -> Floats:
        """(n,) sqrt(V) in units of the square root of the least error; 0 for those without a
        weight."""
        noise = np.where(self.support, self.variance, 0.0)
        return np.asarray(np.sqrt(noise / self.least_error))

    @property
    def scaled_radius(self) -> float:
        """C in units of the square root of the least error."""
        return float(self.radius / np.sqrt(self.least_error))

    def among(self, support: NDArray[np.bool_]) -> OneMarket:
        """The same market, but only the owners of the support (n,) may have a weight."""
        return _in_its_unit(replace(self, support=support, least_error=1.0))

    def error(self, weights: Floats) -> float:
        """The error bound of weights (n,), in units of the least error."""
        noise = float(np.square(self.deviation * weights).sum())
        return noise + float(self.scaled_radius * np.abs(weights - self.share).sum()) ** 2


def one_market(
    number: int, share: Floats, variance: Floats, sells: NDArray[np.bool_], radius: float
) -> OneMarket:
    """A market with its least error computed."""
    return _in_its_unit(OneMarket(number, share, variance, sells, sells, radius, 1.0))


def in_unit_of(market: OneMarket, weights: Floats) -> OneMarket:
    """The same market with errors in units of the error of some weights (n,)."""
    return replace(market, least_error=market.least_error * market.error(weights))


def _in_its_unit(market: OneMarket) -> OneMarket:
    return replace(market, least_error=market.error(unconstrained(market)))


def unconstrained(market: OneMarket) -> Floats:
    """(n,) the weights of `opt-aggr` among those who may have a weight."""
    precision = np.where(market.support, 1.0 / market.variance, 0.0)
    return np.asarray(solve(precision[None], market.share[None], False, market.radius)[0])


class OwnerSymbols:
    """The symbols with which a convex rule is written, for a market of n owners.

    weight         variable (n,): l, the weights. They sum to 1, are at least 0, and are 0 for
                   owners who sell nothing; these constraints are there already
    deviation      parameter (n,): sqrt(V), 0 for owners who sell nothing
    share          parameter (n,): W, the data shares of all bidders
    sells          parameter (n,): 1 for owners who sell something, 0 for the others
    radius         parameter: C, the largest norm of a gradient
    variance       expression: sum_i l_i^2 V_i
    bias           expression: C sum_i |l_i - W_i|, the largest norm of the bias
    error_bound    expression: variance + bias^2

    Errors have the unit in which the least error bound of the market, that of `opt-aggr`, is 1;
    `deviation` and `radius` are in units of its square root. So a solver meets numbers of a similar
    size in every market, and a term that is added to `error_bound` counts relative to the least
    error. `sells`, `share` and `weight` have no unit.
    """

    def __init__(self, n: int) -> None:
        cp = cvxpy()

        self.n = n
        self.weight = cp.Variable(n)
        self.deviation = cp.Parameter(n, nonneg=True)
        self.share = cp.Parameter(n, nonneg=True)
        self.sells = cp.Parameter(n, nonneg=True)
        self.radius = cp.Parameter(nonneg=True)
        self._share_times_radius = cp.Parameter(n, nonneg=True)
        self._own: dict[str, Any] = {}
        self.variance = cp.sum_squares(cp.multiply(self.deviation, self.weight))
        self.bias = cp.norm1(self.radius * self.weight - self._share_times_radius)
        self.error_bound = self.variance + cp.square(self.bias)

    def parameter(self, name: str, shape: int | tuple[int, ...] = (), **attributes: Any) -> Any:
        """A parameter of the rule's own; its numbers come from `parameter_values` of the rule."""
        cp = cvxpy()

        self._own[name] = cp.Parameter(shape, **attributes)
        return self._own[name]

    def contract(self) -> list[Any]:
        """The constraints of every rule: a sum of 1, no negative weight, none without a sale.

        For an owner who sells nothing the second one is 1 >= 0. With 0 >= 0 in its place the
        feasible set would have no inner point, and interior-point solvers lose accuracy there.
        """
        cp = cvxpy()

        lost = 1 - self.sells
        return [
            cp.sum(self.weight) == 1,
            cp.multiply(self.sells, self.weight) + lost >= 0,
            cp.multiply(lost, self.weight) == 0,
        ]

    def take(self, market: OneMarket, own: Mapping[str, ArrayLike], rule: str) -> None:
        """Gives the parameters the numbers of a market."""
        self.deviation.value = market.deviation
        self.share.value = market.share
        self.sells.value = market.support.astype(np.float64)
        self.radius.value = market.scaled_radius
        self._share_times_radius.value = market.scaled_radius * market.share
        if own.keys() != self._own.keys():
            raise ContractError(
                f"aggregation rule {rule!r}: its problem has the parameters "
                f"{sorted(self._own)}, but parameter_values gives {sorted(own)}"
            )
        for name, value in own.items():
            try:
                self._own[name].value = np.asarray(value, np.float64)
            except ValueError as error:
                raise ContractError(
                    f"aggregation rule {rule!r}: parameter {name!r}: {error}"
                ) from None
