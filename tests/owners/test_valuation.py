import numpy as np
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.owners import valuation


def test_families_have_the_values_of_the_paper():
    e = np.full(5, 0.7)
    values = valuation.value(
        valuation.family_codes(list(valuation.FAMILIES)),
        np.full(5, 1.5),
        np.full(5, 10.0),
        e,
        np.full(5, 42.0),
    )
    assert values == pytest.approx(
        [1.5 * 20 * 0.7, 15 * 0.49, 1.5 * 20 * 0.7**0.5, 15 * np.expm1(0.7), 42.0]
    )


def test_selling_nothing_costs_nothing():
    codes = valuation.family_codes(list(valuation.FAMILIES))
    assert (valuation.value(codes, np.ones(5), np.ones(5), np.zeros(5), np.ones(5)) == 0).all()


def test_money_buys_back_the_privacy_loss_it_is_worth():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200).astype(np.int8)
    rate, size, budget = (
        rng.uniform(0.5, 1.5, 200),
        rng.uniform(1, 500, 200),
        rng.uniform(0.5, 2, 200),
    )
    loss = budget * rng.random(200)
    money = valuation.value(codes, rate, size, loss, rate * size * budget)
    assert valuation.loss_for_money(codes, rate, size, budget, money) == pytest.approx(loss)
    assert valuation.loss_for_money(codes, rate, size, budget, money * 1e6) == pytest.approx(budget)


def test_a_single_minded_owner_sells_all_or_nothing():
    code, one = valuation.family_codes(["step", "step"]), np.ones(2)
    loss = valuation.loss_for_money(code, one, 10 * one, 2 * one, np.array([19.9, 20.0]))
    assert loss.tolist() == [0.0, 2.0]


def test_marginal_values_are_the_slopes():
    codes = np.arange(4).astype(np.int8)
    args, step = (np.full(4, 1.2), np.full(4, 30.0)), 1e-6
    high = valuation.value(codes, *args, np.full(4, 0.8 + step), np.zeros(4))
    low = valuation.value(codes, *args, np.full(4, 0.8 - step), np.zeros(4))
    assert valuation.marginal_value(codes, *args, np.full(4, 0.8)) == pytest.approx(
        (high - low) / (2 * step), rel=1e-6
    )


def test_an_unknown_family_is_named_with_the_nearest():
    with pytest.raises(InputError, match=r"'quadratik'.*did you mean 'quadratic'"):
        valuation.family_codes(["linear", "quadratik"])
