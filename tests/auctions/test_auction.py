"""What an auction is given and what it decides is checked, and each wrong thing is named."""

from types import SimpleNamespace

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions.auction import Outcome, check_budget, check_outcome, sales_and_rest
from flmarket_sim.auctions.greedy import before
from flmarket_sim.errors import ContractError, InputError

BIDS = fm.BidBatch(
    np.array([[[1.0], [2.0]], [[3.0], [4.0]]]),
    np.array([[1.0, 2.0], [1.0, 2.0]]),
    np.array([[10.0, 20.0], [10.0, 20.0]]),
)
MONEY = np.array([3.0, 100.0])
LOSS, PAYMENT = np.array([[0.0, 2.0], [1.0, 0.5]]), np.array([[0.0, 3.0], [0.5, 0.0]])


def test_an_outcome_within_the_rules_comes_back_as_it_is():
    checked = check_outcome("fine", Outcome(LOSS, PAYMENT), BIDS, MONEY)
    assert (
        (checked.privacy_loss == LOSS).all()
        and (checked.payment == PAYMENT).all()
        and checked.data_size is None
    )
    fewer = np.array([[1.0, 20.0], [10.0, 5.0]])
    assert (
        check_outcome("fine", Outcome(LOSS, PAYMENT, fewer), BIDS, MONEY).data_size == fewer
    ).all()
    plain = SimpleNamespace(
        privacy_loss=LOSS, payment=PAYMENT
    )  # a plug-in's own class, written before data_size was there
    assert check_outcome("fine", plain, BIDS, MONEY).data_size is None


def test_records_that_were_not_bought_count_as_those_of_one_more_owner_who_sells_nothing():
    fewer = np.array([[1.0, 20.0], [10.0, 5.0]])
    loss, size = sales_and_rest(Outcome(LOSS, PAYMENT, fewer), BIDS.data_size)
    assert loss.tolist() == [[0.0, 2.0, 0.0], [1.0, 0.5, 0.0]]
    assert size.tolist() == [[1.0, 20.0, 9.0], [10.0, 5.0, 15.0]]
    loss, size = sales_and_rest(Outcome(LOSS, PAYMENT, BIDS.data_size), BIDS.data_size)
    assert size.tolist() == [[10.0, 20.0, 1e-9]] * 2  # rules refuse a 0
    loss, size = sales_and_rest(Outcome(LOSS, PAYMENT), BIDS.data_size)
    assert loss.tolist() == LOSS.tolist() and size.tolist() == BIDS.data_size.tolist()


def test_all_of_a_budget_may_be_sold_and_spent_but_for_rounding():
    check_outcome("fine", Outcome(LOSS * (1 + 0.9e-9), PAYMENT * (1 + 0.9e-9)), BIDS, MONEY)
    for wrong in (Outcome(LOSS * (1 + 2e-9), PAYMENT), Outcome(LOSS, PAYMENT * (1 + 2e-9))):
        with pytest.raises(ContractError):
            check_outcome("broken", wrong, BIDS, MONEY)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (
            Outcome(LOSS[:1], PAYMENT),
            r"'broken': privacy_loss must be float64 of shape \(2, 2\), got float64 \(1, 2\)",
        ),
        (
            Outcome(LOSS, PAYMENT.astype(np.float32)),
            r"'broken': payment must be float64 of shape \(2, 2\), got float32 \(2, 2\)",
        ),
        (Outcome(LOSS - 0.1, PAYMENT), "'broken': privacy_loss must be finite and at least 0"),
        (
            Outcome(LOSS, PAYMENT + np.array([np.nan, 0.0])),
            "'broken': payment must be finite and at least 0",
        ),
        (
            Outcome(LOSS + 0.1, PAYMENT),
            "'broken' sells more privacy than an owner's reported budget",
        ),
        (Outcome(LOSS, PAYMENT + 0.5), r"'broken' spends 4 of a budget of 3$"),
        (Outcome(LOSS, PAYMENT * 200), r"'broken' spends 600 of a budget of 3$"),
        (
            Outcome(LOSS, PAYMENT, np.full((2, 2), 0.5)),
            "'broken': data_size must be at least 1 and at most what was reported",
        ),
        (
            Outcome(LOSS, PAYMENT, BIDS.data_size + np.array([0.0, 1.0])),
            "'broken': data_size must be at least 1 and at most",
        ),
        (Outcome(LOSS, PAYMENT, BIDS.data_size[:1]), r"'broken': data_size .* of shape \(2, 2\)"),
    ],
)
def test_an_outcome_that_breaks_a_rule_is_refused_by_name(outcome, why):
    with pytest.raises(ContractError, match=why):
        check_outcome("broken", outcome, BIDS, MONEY)


def test_the_market_that_is_overspent_most_is_the_one_that_is_named():
    with pytest.raises(ContractError, match=r"spends 8 of a budget of 3$"):
        check_outcome("broken", Outcome(LOSS, np.array([[4.0, 4.0], [60.0, 41.0]])), BIDS, MONEY)
    with pytest.raises(ContractError, match=r"spends 110 of a budget of 100$"):
        check_outcome("broken", Outcome(LOSS, np.array([[4.0, 4.0], [60.0, 50.0]])), BIDS, MONEY)


@pytest.mark.parametrize(
    ("money", "why"),
    [
        ([1.0], r"budget must have shape \(2,\), one for each market, got \(1,\)"),
        ([[1.0, 1.0]], r"got \(1, 2\)"),
        ([1.0, -0.5], r"^budget\[1\] \(market 1\) is -0.5; .* at least 0$"),
        ([1.0, np.nan], r"^budget\[1\] \(market 1\) is nan; "),
        ([np.inf, 1.0], r"^budget\[0\] \(market 0\) is inf; "),
    ],
)
def test_impossible_money_is_refused_with_the_number(money, why):
    with pytest.raises(InputError, match=why):
        check_budget(BIDS, money)


def test_no_money_is_a_budget():
    assert check_budget(BIDS, [0, 1]).dtype == np.float64


def test_of_two_equal_owners_fair_query_takes_the_first_and_pays_what_the_budget_just_allows():
    n = 40
    bids = fm.BidBatch(np.full((1, n, 1), 2.0), np.full((1, n), 1.0), np.ones((1, n)))
    outcome = fm.auctions.create("fair-query").decide(
        bids, np.array([10.0]), np.random.default_rng(0)
    )
    assert np.flatnonzero(outcome.payment[0]).tolist() == [0, 1, 2, 3, 4]  # V = 2 = B / 5, exactly
    assert outcome.payment[0, :5].tolist() == [2.0] * 5
    assert outcome.privacy_loss[0, :5].tolist() == [1.0 / 35] * 5


def test_proportional_share_still_buys_where_the_money_is_just_enough():
    bids = fm.BidBatch(np.array([[[2.0], [4.0]]]), np.array([[1.0, 1.0]]), np.ones((1, 2)))
    outcome = fm.auctions.create("proportional-share").decide(
        bids, np.array([8.0]), np.random.default_rng(0)
    )
    assert outcome.payment.tolist() == [[4.0, 4.0]]  # 4 a unit for both: exactly the money
    less = fm.auctions.create("proportional-share").decide(
        bids, np.array([7.99]), np.random.default_rng(0)
    )
    assert less.payment.tolist() == [[4.0, 0.0]]  # the second sets the price of the first


def test_fair_query_takes_equal_owners_in_their_order_in_a_large_market_too():
    value = np.random.default_rng(0).choice([1.0, 2.0], 200)
    bids = fm.BidBatch(value[None, :, None], np.ones((1, 200)), np.ones((1, 200)))
    outcome = fm.auctions.create("fair-query").decide(
        bids, np.array([260.0]), np.random.default_rng(0)
    )
    cheapest = sorted(range(200), key=lambda owner: value[owner])[:130]  # 2 = 260 / 130
    assert set(np.flatnonzero(outcome.payment[0])) == set(cheapest)


def test_before_the_first_place_stands_nobody():
    assert before(np.array([[1.0, 2.0, 4.0]])).tolist() == [[0.0, 1.0, 3.0]]
