import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from tests.support.profiles import random_profiles


def test_truthful_bids_state_the_value_of_every_level():
    truth = random_profiles(np.random.default_rng(1), 3, 5)
    bids = truth.bids(levels=4)
    for m in range(1, 5):
        assert bids.values[:, :, m - 1] == pytest.approx(truth.value(truth.privacy_budget * m / 4))


def test_a_step_owner_asks_for_everything_at_every_level():
    truth = fm.Profiles([["step"]], [[1.5]], [[2.0]], [[10.0]])
    assert truth.bids(levels=3).values.tolist() == [[[30.0, 30.0, 30.0]]]


def test_other_levels_are_interpolated_from_nothing_at_zero():
    bids = fm.BidBatch([[[1.0, 3.0]]], [[2.0]], [[1.0]])
    assert bids.at_levels(4).tolist() == [[[0.5, 1.0, 2.0, 3.0]]]
    assert bids.value_at(np.array([[1.5]])).tolist() == [[2.0]]
    assert bids.at_levels(1).tolist() == [[[3.0]]]


def test_selling_more_than_one_has_is_infinitely_bad():
    truth = fm.Profiles([["linear", "linear"]], [[1.0, 1.0]], [[1.0, 1.0]], [[5.0, 5.0]])
    utility = truth.utility(
        np.array([[1.1, 1.0]]), np.array([[99.0, 99.0]]), np.array([[5.0, 6.0]])
    )
    assert np.isneginf(utility).all()


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("rate", 0.0),
        ("rate", np.nan),
        ("privacy_budget", -1.0),
        ("privacy_budget", np.inf),
        ("data_size", 0.0),
    ],
)
def test_impossible_types_are_refused_by_name(column, wrong):
    columns = {
        "family": [["linear"]],
        "rate": [[1.0]],
        "privacy_budget": [[1.0]],
        "data_size": [[1.0]],
    }
    with pytest.raises(InputError, match=column):
        fm.Profiles(**(columns | {column: [[wrong]]}))


@pytest.mark.parametrize("values", [[2.0, 1.0], [-1.0, 1.0], [np.nan, 1.0], [1.0, np.inf]])
def test_a_report_that_is_no_valuation_is_refused(values):
    with pytest.raises(InputError, match="not a valuation"):
        fm.BidBatch([[values]], [[1.0]], [[1.0]])


def test_columns_of_different_shape_are_refused():
    with pytest.raises(InputError, match="shape"):
        fm.Profiles([["linear"]], [[1.0, 2.0]], [[1.0]], [[1.0]])
    with pytest.raises(InputError, match=r"\(K, n, M\)"):
        fm.BidBatch([[1.0]], [[1.0]], [[1.0]])
