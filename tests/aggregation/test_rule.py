"""What goes into an aggregation rule and what comes out of it is checked, and each wrong thing is
named."""

import numpy as np
import pytest

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound, error_bound_parts
from flmarket_sim.aggregation.rule import check_inputs, check_weights, normalised
from flmarket_sim.errors import ContractError, InputError

LOSS = np.array([[0.5, 0.0, 2.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
SIZE = np.array([[10.0, 20.0, 70.0], [1.0, 1.0, 2.0], [3.0, 4.0, 1.0]])


def with_value(array, value):
    changed = array.copy()
    changed[1, 1] = value
    return changed


@pytest.mark.parametrize(
    ("loss", "size", "clip", "why"),
    [
        (LOSS[0], SIZE[0], 1.0, r"must share a shape \(K, n\), got \(3,\) and \(3,\)"),
        (LOSS, SIZE[:2], 1.0, r"got \(3, 3\) and \(2, 3\)"),
        (LOSS[:, :0], SIZE[:, :0], 1.0, r"got \(3, 0\)"),
        *(
            (with_value(LOSS, bad), SIZE, 1.0, r"^privacy_loss\[1, 1\] .* must be at least 0")
            for bad in (-1e-9, np.nan, np.inf)
        ),
        *(
            (LOSS, with_value(SIZE, bad), 1.0, r"^data_size\[1, 1\] .* must be positive")
            for bad in (0.0, -1.0, np.nan, np.inf)
        ),
        *(
            (LOSS, SIZE, bad, f"^clip must be a number from .* to .*, got {bad}$")
            for bad in (0.0, -1.0, np.nan, np.inf)
        ),
    ],
)
def test_impossible_inputs_are_refused_by_name(loss, size, clip, why):
    with pytest.raises(InputError, match=why):
        check_inputs(loss, size, clip)


def test_possible_inputs_come_back_as_float64():
    loss, size = check_inputs([[0, 1]], [[1, 2]], 0.5)
    assert loss.dtype == size.dtype == np.float64
    assert loss.tolist() == [[0.0, 1.0]] and size.tolist() == [[1.0, 2.0]]


GOOD = np.array([[0.25, 0.0, 0.75], [1.0, 0.0, 0.0], [0.375, 0.5, 0.125]])


def test_good_weights_pass_also_where_nobody_sells():
    assert check_weights("fine", GOOD, LOSS) is GOOD
    assert check_weights("fine", GOOD + np.array([0.5e-6, 0, 0]), LOSS) is not None  # rounding


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        (GOOD[:2], r"'broken': weights must be float64 of shape \(3, 3\), got float64 \(2, 3\)"),
        (
            GOOD.astype(np.float32),
            r"'broken': weights must be float64 of shape \(3, 3\), got float32",
        ),
        (with_value(GOOD, np.nan), "'broken': weights must be finite and at least 0"),
        (
            GOOD + np.array([[0, 0, 0], [0.5, -0.5, 0], [0, 0, 0]]),
            "'broken': weights must be finite and at least 0",
        ),
        (
            GOOD + np.array([[0, 0, 2e-6], [0, 0, 0], [0, 0, 0]]),
            r"'broken': weights must sum to 1, got \[1\.0\d*, 1\.0, 1\.0\]",
        ),
        (GOOD - np.array([[0, 0, 2e-6], [0, 0, 0], [0, 0, 0]]), "'broken': weights must sum to 1"),
        (
            np.array([[0.25, 0.25, 0.5], [1.0, 0, 0], GOOD[2]]),
            "'broken' puts a weight on an owner who sells nothing",
        ),
    ],
)
def test_weights_that_break_the_contract_are_refused(weights, why):
    with pytest.raises(ContractError, match=why):
        check_weights("broken", weights, LOSS)


def test_a_weight_on_somebody_who_sells_nothing_is_refused_however_little_the_others_sell():
    with pytest.raises(ContractError, match="puts a weight on an owner who sells nothing"):
        check_weights("broken", np.array([[0.5, 0.5]]), np.array([[1e-9, 0.0]]))


def test_scores_are_normalised_market_by_market():
    scores = np.array([[1.0, 3.0], [0.1, 0.1], [0.0, 0.0]])
    sizes = np.array([[1.0, 1.0], [5.0, 1.0], [3.0, 1.0]])
    assert normalised(scores, sizes) == pytest.approx(
        np.array([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    )


def obvious(name, loss, size):
    score = {
        "convl-aggr": lambda e, d: d * (e > 0),
        "var-opt": lambda e, d: e * e,
        "uniform": lambda e, d: float(e > 0),
    }[name]
    scores = [score(e, d) for e, d in zip(loss, size, strict=True)]
    return [s / sum(scores) for s in scores] if sum(scores) else [d / sum(size) for d in size]


@pytest.mark.parametrize("name", ["convl-aggr", "var-opt", "uniform"])
def test_a_simple_rule_weighs_each_market_of_a_batch_by_its_formula(name):
    rng = np.random.default_rng(0)
    loss = (
        rng.uniform(0.1, 2.0, (4, 4))
        * (rng.random((4, 4)) < 0.7)
        * np.array([1e-200, 1.0, 1e3, 0.0])[:, None]
    )
    size = rng.uniform(1.0, 9.0, (4, 4))
    found = aggregation.create(name).weights(loss, size)
    assert found.dtype == np.float64
    scaled = (
        loss * np.array([1e200, 1.0, 1e-3, 1.0])[:, None]
    )  # weights do not depend on the unit of the loss
    assert found == pytest.approx(
        np.array([obvious(name, *row) for row in zip(scaled, size, strict=True)])
    )


@pytest.mark.parametrize(
    "name", ["opt-aggr", "opt-aggr-paper", "opt-aggr-winners", "convl-aggr", "var-opt", "uniform"]
)
def test_the_clip_is_one_unless_said_and_moves_no_weight(name):
    rule = aggregation.create(name)
    assert (rule.weights(LOSS, SIZE) == rule.weights(LOSS, SIZE, clip=1.0)).all()
    assert rule.weights(LOSS, SIZE) == pytest.approx(rule.weights(LOSS, SIZE, clip=3.0), abs=1e-9)


def test_the_error_bound_of_weights_of_another_shape_is_refused():
    with pytest.raises(
        InputError, match=r"weights must have the shape of privacy_loss \(3, 3\), got \(3, 2\)"
    ):
        error_bound_parts(GOOD[:, :2], LOSS, SIZE)


def test_the_bound_grows_with_the_square_of_the_clip_and_is_infinite_without_sellers():
    once, twice = (error_bound_parts(GOOD, LOSS, SIZE, clip=clip) for clip in (1.0, 2.0))
    assert once.total[:2] * 4 == pytest.approx(twice.total[:2])
    assert once.variance[0] == pytest.approx(8 * ((0.25 / 0.5) ** 2 + (0.75 / 2.0) ** 2))
    assert once.squared_bias[0] == pytest.approx((0.15 + 0.2 + 0.05) ** 2)
    assert np.isinf(once.total).tolist() == [False, False, True]
    assert error_bound_parts(GOOD, LOSS, SIZE).total[0] == once.total[0]


@pytest.mark.filterwarnings("error")
def test_the_bound_is_the_sum_of_its_parts_for_a_clip_of_one_unless_said():
    for clip in (1.0, 3.0):
        np.testing.assert_array_equal(
            error_bound(GOOD, LOSS, SIZE, clip), error_bound_parts(GOOD, LOSS, SIZE, clip).total
        )
    np.testing.assert_array_equal(
        error_bound(GOOD, LOSS, SIZE), error_bound(GOOD, LOSS, SIZE, clip=1.0)
    )


@pytest.mark.filterwarnings("error")
def test_a_market_without_sellers_has_no_bound_whatever_the_weights_are():
    """Also beside markets with sellers, and where nobody has a weight."""
    loss, size = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 3.0], [1.0, 3.0]])
    assert np.isinf(error_bound(np.array([[0.0, 0.0], [1.0, 0.0]]), loss, size)).tolist() == [
        True,
        False,
    ]


def test_weights_that_are_no_numbers_are_refused_by_name_and_place():
    with pytest.raises(
        InputError,
        match=r"weights\[0, 1\] \(market 0, owner 1\) is nan.*be finite, and at most 1e\+100",
    ):
        error_bound(np.array([[0.5, np.nan]]), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(InputError, match="weights"):
        error_bound(np.array([["a", "b"]]), np.ones((1, 2)), np.ones((1, 2)))
