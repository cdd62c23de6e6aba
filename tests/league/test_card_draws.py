"""The draws of a market: the same for every mechanism and in both sizes of the card."""

import numpy as np

from flmarket_sim.league.card_draws import draws


def test_smaller_sizes_take_the_first_draws(small_card):
    market = small_card.market("plain")
    truth, budget = draws(small_card, market)
    some, money = draws(small_card, market, 3)
    assert truth.shape == (6, 4)
    assert some.shape == (3, 4)
    np.testing.assert_array_equal(some.rate, truth.rate[:3])
    np.testing.assert_array_equal(money, budget[:3])


def test_budgets_do_not_tell_rates(small_card):
    """A budget is a factor of what everything is worth at the mean rate, which is public."""
    truth, budget = draws(small_card, small_card.market("plain"))
    worth = truth.value(truth.privacy_budget) / truth.rate  # linear in the rate
    factor = budget / worth.sum(axis=1)
    assert ((factor >= 0.3) & (factor <= 1.0)).all()
