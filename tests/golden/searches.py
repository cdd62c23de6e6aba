"""What searches, proofs and solvers find in a few small reference markets.

Each reference is a function without arguments that returns named arrays and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flmarket_sim as fm
from flmarket_sim.aggregation.constrained_optimum import exact
from flmarket_sim.aggregation.constraint_limits import box, least_bias, limits
from flmarket_sim.aggregation.convex_owners import one_market, unconstrained
from flmarket_sim.aggregation.error_bound import error_bound_parts
from flmarket_sim.aggregation.market_error import coordinate_error, error_of_kappa
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import part_of_error, solve_with_duals
from flmarket_sim.aggregation.rule import data_shares, noise_and_radius
from flmarket_sim.auctions import first_best
from flmarket_sim.auctions.money_search import Spending, descend, first_look, share_out, starts
from flmarket_sim.auctions.penalised_purchase import penalised_purchase
from flmarket_sim.auctions.proved_bound import proved_bound, proved_penalised_bound
from flmarket_sim.auctions.second_best import public_budget, second_best
from flmarket_sim.owners.rate_prior import UniformRates
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.plugins.registry import perturbations
from tests.support.profiles import random_profiles

FAMILIES = ("linear", "quadratic", "sqrt", "exponential", "step")
CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {"cap": 0.4},
    {"fairness": 0.5},
    {"cap": 0.7},
    {"bias": 0.3, "cap": 0.6},
    {"cap": 0.5, "fairness": 0.3, "bias": 0.9},
)
PURCHASES = (
    *("mixed", "steps", "mixed vector", "mixed proved", "mixed vector proved"),
    "steps vector proved",
)
FLOORS = ("every time", "on average", "on average proved")


def purchases(case: str) -> dict[str, Any]:
    """The best purchase of a buyer who knows all types, and what is proved about it."""
    families = ("step",) if "steps" in case else FAMILIES
    truth = random_profiles(np.random.default_rng(21), 2, 3, families)
    error = error_of_kappa(300.0, 2.0) if "vector" in case else coordinate_error()
    money = np.array([0.2, 0.6]) * truth.total_value()
    found = first_best(truth, money, bound="proved" in case, error=error)
    return vars(found) | {"gap": found.gap}


def floors(case: str) -> dict[str, Any]:
    """The least error of any truthful mechanism in two markets."""
    truth = random_profiles(np.random.default_rng(22), 2, 2)
    prior = UniformRates(0.5, 2.5)
    holds: Any = "on average" if "average" in case else "every time"
    money = public_budget(truth, [0.3, 0.6], prior)
    error = error_of_kappa(8.0, 2.0)
    return vars(second_best(truth, money, prior, error, holds=holds, prove="proved" in case))


def priced() -> dict[str, Any]:
    """The best purchases at three prices of money, and a proved bound of the best one."""
    truth = random_profiles(np.random.default_rng(23), 3, 3, FAMILIES)
    error = coordinate_error()
    price = np.array([0.3, 1.0, 3.0]) * 10.0 / truth.total_value()
    noise = NoiseCurve.of(error, float(truth.privacy_budget.max()))
    loss, value = penalised_purchase(truth, price, noise, thorough=False)
    bound = proved_penalised_bound(truth, price, loss, most_nodes=8)
    return {"loss": loss, "value": value, "bound": bound}


def spendings() -> dict[str, Any]:
    """The steps of a search that shares out money: its starts, and where a few steps lead."""
    owners = random_profiles(np.random.default_rng(24), 2, 3)
    price = owners.value(owners.privacy_budget) * np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    bought = np.where(price > 0, 0.0, 0.4)
    problem = Spending(owners, 0.4 * price.sum(axis=1), price, bought)
    found: dict[str, Any] = {"starts": starts(problem)}
    for error in (coordinate_error(1.5), error_of_kappa(200.0)):
        noise = NoiseCurve.of(error, 2.0, points=200)
        for steps in (1, 2, 5):
            found[f"{steps} steps, {error.kind}"] = list(descend(problem, price**2, steps, noise))
        found[f"a look, {error.kind}"] = list(first_look(problem, noise))
    found["shared out"] = share_out(price * [1.0, 3.0, 0.2], price, problem.cash * 1.7)
    return found


def poor_bounds() -> dict[str, Any]:
    """What is proved quickly about poor purchases, so that the search for a proof ends early."""
    truth = random_profiles(np.random.default_rng(25), 3, 3, FAMILIES)
    money = np.array([0.1, 0.3, 0.8]) * truth.total_value()
    poor = truth.privacy_budget * np.array([[0.05, 0.0, 0.02]])
    found = {}
    for error in (coordinate_error(2.0), error_of_kappa(150.0)):
        for nodes in (0, 2):
            bound = proved_bound(truth, money, poor, 1.0, 0.01, nodes, error)
            price = 3.0 / money
            priced = proved_penalised_bound(truth, price, poor, 0.02, nodes, error)
            found[f"{nodes} nodes, {error.kind}"] = [bound, priced]
    return found


def curves() -> dict[str, Any]:
    """The variance of a market from its table and from the paper's formula."""
    noise = perturbations.create("piecewise")
    found: dict[str, Any] = {}
    for error in (vector_error(noise, 4, 2.0), coordinate_error(2.0)):
        curve = NoiseCurve.of(error, 4.0, 0.01, 50)
        loss = np.array([[0.001, 0.02, 0.5], [1.3, 3.9, 4.0]])
        found[error.kind] = [
            curve.variance(loss * (loss > 0.1)) if curve.tabulated else [],
            curve.variance_at(loss),
            curve.elasticity(loss),
            curve.noise_slopes(loss / 5, loss),
            curve.unit_noise(loss / 5, loss),
            curve.precision_above(loss),
            [curve.slack, curve.radius],
        ]
    return found


def scales() -> dict[str, Any]:
    """Markets of extreme variances in the units of a solver, and the roots of exact weights."""
    rng = np.random.default_rng(35)
    found: dict[str, Any] = {}
    loss = rng.uniform(0.1, 2.0, (3, 4)) * (rng.random((3, 4)) < 0.8)
    loss[:, 0] = 1.0
    for far in (1e-190, 1e-120, 1.0, 1e120, 1e199):
        spread = far * np.exp(rng.normal(0.0, 3.0, (3, 4)))
        noise = np.where(loss > 0, np.clip(spread, 1e-200, 1e200), np.inf)
        found[f"variances near {far:g}"] = list(noise_and_radius(noise, loss, 3.0))
    for far in (1e-99, 1e-70, 1.0, 1e70, 1e99):
        found[f"losses near {far:g}"] = list(noise_and_radius(None, loss * far, 2.0))
    inverse = loss**2 * np.exp(rng.normal(0.0, 2.0, (3, 4)))
    share = data_shares(np.ceil(rng.lognormal(3.0, 1.5, (3, 4))))
    for forgets in (False, True):
        for clip in (1.0, 0.3, 5.0):
            weights, u, v = solve_with_duals(inverse, share, forgets, clip)
            found[f"roots, {forgets}, {clip:g}"] = [weights, u, v]
            columns = (column[:, None] for column in (u, v))
            found[f"parts, {forgets}, {clip:g}"] = part_of_error(inverse, *columns, share)
    parts = error_bound_parts(share, loss, share * 99.0, 2.0)
    found["bound"] = [parts.total, parts.variance, parts.squared_bias]
    return found


def supports() -> dict[str, Any]:
    """What constraints leave of supports, and the weights with the least bias on each."""
    rng = np.random.default_rng(31)
    found: dict[str, Any] = {}
    for n in (2, 3, 6):
        share = data_shares(np.ceil(rng.lognormal(3.0, 1.5, (1, n))))[0]
        sells = rng.random(n) < 0.8
        sells[0] = True
        group = share <= np.median(share)
        for group_at in (group, np.zeros(n, bool)):
            candidates = sells & (rng.random((8, n)) < 0.7)
            candidates[:, 0] = True
            for cap, fairness, bias in ((1.0, np.inf, np.inf), (0.4, 0.2, 0.5), (0.2, 0.05, 0.1)):
                of_all = limits(share, sells, group_at, candidates, cap, fairness, bias)
                label = f"{n} owners, {group_at.sum()} in the group, cap {cap:g}"
                found[label] = list(vars(of_all).values())
                for number, support in enumerate(candidates[:3]):
                    one = limits(share, sells, group_at, candidates[[number]], cap, fairness, bias)
                    of_one = box(share, group_at, support, one)
                    least = least_bias(share, group_at, of_one)
                    found[f"{label}, support {number}"] = [*vars(of_one).values(), least]
    rule = fm.aggregation.create("constrained", sparsity=4, cap=0.4)
    loss = rng.uniform(0.2, 2.0, (1, 22))
    size = np.ceil(rng.lognormal(3.0, 1.5, (1, 22)))
    found["few of many"] = rule.weights(loss, size)
    return found


def optima() -> dict[str, Any]:
    """Exact optima under constraints, from weights that are known roughly; none is None."""
    rng = np.random.default_rng(33)
    found: dict[str, Any] = {}
    for options in (*CONSTRAINTS, {"cap": 0.6, "bias": 0.5}, {"fairness": 0.1, "bias": 0.4}):
        given = {key: value for key, value in options.items() if key != "sparsity"}
        if not given:
            continue
        for n in (3, 6):
            loss, size = rng.uniform(0.3, 2.0, (1, n)), np.ceil(rng.lognormal(3.0, 1.5, (1, n)))
            loss[0, 1] *= n == 3
            share, sells = data_shares(size)[0], loss[0] > 0
            with np.errstate(divide="ignore"):
                variance = 8.0 / loss**2
            market = one_market(0, share, variance[0], sells, 1.0)
            group = (share <= np.median(share)) & ("fairness" in given)
            ends = (given.get("cap", 1.0), given.get("fairness", np.inf), given.get("bias", np.inf))
            of_one = box(share, group, sells, limits(share, sells, group, sells[None], *ends))
            for start in (unconstrained(market), least_bias(share, group, of_one)):
                rough = np.clip(start, of_one.lower, of_one.upper)
                found[f"{given}, {n} owners, from {rough.max():.6f}"] = exact(
                    market, group, of_one, rough
                )
    return found


SEARCHES: dict[str, Callable[[], dict[str, Any]]] = (
    {f"purchase {case}": lambda case=case: purchases(case) for case in PURCHASES}
    | {f"floor {case}": lambda case=case: floors(case) for case in FLOORS}
    | {"purchase at a price": priced, "shares of money": spendings, "poor proofs": poor_bounds}
    | {"supports": supports, "exact optima": optima, "scales": scales, "noise curve": curves}
)
