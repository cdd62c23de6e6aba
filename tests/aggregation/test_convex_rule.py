"""Rules that are written as convex problems: what they find, what they refuse, when they import."""

import os
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pytest

from flmarket_sim.aggregation import create, error_bound
from flmarket_sim.aggregation.convex_rule import STACK, WORTH_STACKING, ConvexRule
from flmarket_sim.errors import ContractError, InputError
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE


class LeastError(ConvexRule):
    """The problem of `opt-aggr`, by a solver."""

    name = "least-error"

    def problem(self, owners):
        return owners.error_bound, []


class Capped(ConvexRule):
    name = "capped"

    def __init__(self, cap=0.3):
        self.cap = cap
        self.written = 0

    def problem(self, owners):
        self.written += 1
        return cp.Minimize(owners.error_bound), [owners.weight <= self.cap]


def markets(count, n, kappa, seed=0):
    """Losses, sizes and variances of markets with losers, and sizes from 1 to a million."""
    rng = np.random.default_rng(seed)
    loss = rng.uniform(0.05, 3.0, (count, n)) * (rng.random((count, n)) < 0.75)
    loss[:, 0] = 1.0
    size = np.floor(np.exp(rng.uniform(0, np.log(1e6), (count, n))))
    with np.errstate(divide="ignore"):
        return loss, size, kappa / loss**2


@pytest.mark.parametrize("n", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("kappa", [8.0, 4880.0, 1e5])
def test_a_rule_without_constraints_is_opt_aggr(n, kappa):
    loss, size, variance = markets(12, n, kappa, seed=n)
    exact = create("opt-aggr").weights(loss, size, 1.0, variance)
    found = LeastError().weights(loss, size, 1.0, variance)
    bounds = [error_bound(weights, loss, size, 1.0, variance) for weights in (exact, found)]
    assert np.abs(found - exact).max() <= 1e-8
    assert np.abs(bounds[1] / bounds[0] - 1).max() <= 1e-8


@pytest.mark.parametrize("clip", [1e-3, 1.0, 100.0])
def test_without_variances_the_paper_s_are_meant_whatever_the_clip(clip):
    loss, size, _ = markets(10, 6, 8.0)
    found = LeastError().weights(loss, size, clip)
    assert found == pytest.approx(create("opt-aggr").weights(loss, size, clip), abs=1e-8)
    assert found.dtype == np.float64 and (found[loss == 0] == 0).all()


def test_variances_need_not_fall_with_the_square_of_the_loss():
    loss, size, _ = markets(10, 6, 8.0)
    variance = np.where(loss > 0, 300 / np.expm1(np.maximum(loss, 1e-9)) + 40, np.inf)
    found = LeastError().weights(loss, size, 2.0, variance)
    exact = create("opt-aggr").weights(loss, size, 2.0, variance)
    assert found == pytest.approx(exact, abs=1e-8)


def test_many_markets_are_solved_in_stacks_with_the_weights_of_single_ones():
    count = WORTH_STACKING + STACK // 2  # the last stack is not full
    loss, size, variance = markets(count, 4, 100.0)
    loss[:, 1] = np.maximum(loss[:, 1], 0.5)
    loss[5] = 0.0  # nobody sells
    loss[6, 1:] = 0.0  # one owner sells
    with np.errstate(divide="ignore"):
        variance = 100 / loss**2
    together = Capped(0.6).weights(loss, size, 1.0, variance)
    assert together.sum(axis=1) == pytest.approx(1.0)
    assert together[6].tolist() == [1, 0, 0, 0]
    for k in range(0, count, 5):
        alone = Capped(0.6).weights(loss[[k]], size[[k]], 1.0, variance[[k]])
        assert together[k] == pytest.approx(alone[0], abs=1e-6)


def test_a_problem_is_written_once_for_each_number_of_owners():
    rule = Capped(0.6)
    for n in (4, 6, 4, 6, 4):
        loss, size = np.ones((3, n)), np.ones((3, n))
        rule.weights(loss, size)
    assert rule.written == 2


def test_weights_do_not_depend_on_the_markets_before():
    loss, size, variance = markets(8, 6, 1e3)
    loss, variance = np.maximum(loss, 0.3), 1e3 / np.maximum(loss, 0.3) ** 2
    used = Capped()
    used.weights(loss[:7], size[:7], 1.0, variance[:7])
    last = (loss[7:], size[7:], 1.0, variance[7:])
    assert (used.weights(*last) == Capped().weights(*last)).all()


def test_those_who_sell_alone_have_the_whole_weight_and_nobody_s_market_the_data_shares():
    loss, size = np.array([[0.0, 2.0], [0.0, 0.0]]), np.array([[3.0, 1.0], [3.0, 1.0]])
    assert Capped(0.1).weights(loss, size).tolist() == [[0.0, 1.0], [0.75, 0.25]]


def test_a_market_without_a_solution_is_named_with_the_rule_the_status_and_a_way_out():
    loss, size = np.ones((3, 4)), np.ones((3, 4))
    loss[1, 2:] = 0
    with pytest.raises(
        InputError,
        match=r"rule 'capped': no weights for market 1 \(2 of 4 owners sell\): CLARABEL says "
        r"'infeasible\w*'. No weights satisfy its constraints there; loosen them",
    ):
        Capped(0.3).weights(loss, size)


def test_also_in_a_stack_the_market_without_a_solution_is_named():
    loss = np.ones((WORTH_STACKING, 4))
    loss[101, :2] = 0
    with pytest.raises(InputError, match=r"no weights for market 101 \(2 of 4 owners sell\)"):
        Capped(0.3).weights(loss, np.ones_like(loss))


def test_an_objective_without_a_least_value_is_explained():
    class Endless(ConvexRule):
        name = "endless"

        def problem(self, owners):
            return cp.Maximize(cp.Variable()), []

    with pytest.raises(InputError, match=r"'unbounded'\. Its objective has no least value"):
        Endless().weights(np.ones((1, 3)), np.ones((1, 3)))


def test_a_product_of_parameters_is_refused_with_a_way_out():
    class Slow(ConvexRule):
        name = "slow"

        def problem(self, owners):
            return owners.variance + cp.square(
                owners.radius * cp.norm1(owners.weight - owners.share)
            ), []

    with pytest.raises(ContractError, match=r"'slow': its problem is convex but not DPP.*bias"):
        Slow().weights(np.ones((1, 3)), np.ones((1, 3)))


def test_a_problem_that_is_not_convex_is_refused_by_its_part():
    class Hollow(ConvexRule):
        name = "hollow"

        def problem(self, owners):
            return owners.error_bound, [cp.norm(owners.weight) >= 0.9]

    with pytest.raises(ContractError, match=r"'hollow'.*\(DCP\): the constraint 0\.9 <= "):
        Hollow().weights(np.ones((1, 3)), np.ones((1, 3)))


def test_a_problem_that_returns_something_else_is_refused():
    class Half(ConvexRule):
        name = "half"

        def problem(self, owners):
            return owners.error_bound

    with pytest.raises(ContractError, match="`problem` must return an objective and a list"):
        Half().weights(np.ones((1, 3)), np.ones((1, 3)))


class OwnLimits(ConvexRule):
    """No owner has more than twice her data share; a parameter of the rule's own says so."""

    name = "own-limits"

    def problem(self, owners):
        return owners.error_bound, [owners.weight <= owners.parameter("most", owners.n)]

    def parameter_values(self, market):
        return {"most": 2 * market.share}


def test_a_rule_has_parameters_of_its_own():
    loss = np.array([[0.1, 2.0, 2.0], [2.0, 2.0, 0.1]])
    size = np.array([[5.0, 4.0, 1.0], [5.0, 4.0, 1.0]])
    found = OwnLimits().weights(loss, size)
    assert (found <= 2 * size / 10 + 1e-8).all()
    assert found[0, 2] == pytest.approx(0.2, abs=1e-7)


def test_forgotten_and_misshapen_parameters_are_refused():
    class Forgetful(OwnLimits):
        def parameter_values(self, market):
            return {}

    class Misshapen(OwnLimits):
        def parameter_values(self, market):
            return {"most": np.ones(7)}

    with pytest.raises(ContractError, match=r"parameters \['most'\], but parameter_values gives"):
        Forgetful().weights(np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ContractError, match="parameter 'most': "):
        Misshapen().weights(np.ones((1, 3)), np.ones((1, 3)))


LAZY = """
import sys
import numpy as np
import flmarket_sim as fm

fm.aggregation.names()
ordinary = fm.aggregation.create("opt-aggr").weights(np.ones((1, 3)), np.ones((1, 3)))
rule = fm.aggregation.create("constrained", cap=0.4)
rule.weights(np.ones((1, 3)), np.ones((1, 3)))  # the closed form keeps the cap
fm.aggregation.create("opt-aggr-scs")
print("cvxpy" in sys.modules)
rule.weights(np.ones((1, 3)), np.array([[8.0, 1.0, 1.0]]))
print("cvxpy" in sys.modules)
"""


def test_cvxpy_is_imported_when_a_problem_is_solved_and_not_before():
    done = subprocess.run(
        [sys.executable, "-c", LAZY],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]
