"""The best rule of two posted ratios, and sales in turn."""

import itertools
import time

import numpy as np
import pytest

from flmarket_sim.auctions.procurement.posted_rule import PostedPoints, PostedRule
from flmarket_sim.auctions.procurement.sales_in_turn import sell_in_turn

from . import references


def markets(seed, count, n, whole=False):
    rng = np.random.default_rng(seed)
    if whole:  # many ties, and owners who ask nothing
        asks, worth = rng.integers(0, 6, (count, n)), rng.integers(1, 4, (count, n))
    else:
        asks, worth = rng.lognormal(0, 1, (count, n)), rng.lognormal(0, 1, (count, n))
    money = rng.uniform(0.0, 1.5, count) * asks.sum(axis=1)
    return asks.astype(float), worth.astype(float), money


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_edge_of_the_hull_is_the_best_of_all_rules(n, whole):
    asks, worth, money = markets(n, 60, n, whole)
    rule = PostedRule.best(asks, worth, money)
    for k in range(60):
        found = (rule.low[k], rule.high[k], rule.chance[k])
        sold, spent = references.rule_outcome(asks[k], worth[k], found)
        assert rule.sold[k] == pytest.approx(sold)
        assert spent <= money[k] * (1 + 1e-12)
        assert sold == pytest.approx(references.best_rule(asks[k], worth[k], money[k])[0])


def test_no_rule_on_a_grid_buys_more():
    """The twin takes the largest chance for each pair of ratios; here chances are free."""
    asks, worth, money = markets(3, 20, 6)
    best = PostedRule.best(asks, worth, money)
    for k in range(20):
        ratios = [0.0, *(asks[k] / worth[k])]
        for low, high in itertools.product(ratios, repeat=2):
            for chance in np.linspace(0, 1, 21) if low <= high else ():
                rule = (low, high, chance)
                sold, spent = references.rule_outcome(asks[k], worth[k], rule)
                assert spent > money[k] or sold <= best.sold[k] * (1 + 1e-12)


def test_the_cutoff_is_the_best_single_ratio():
    asks, worth, money = markets(4, 100, 7, whole=True)
    points = PostedPoints.of(asks, worth)
    sold = points.sold[np.arange(100), points.cutoff(money)]
    for k in range(100):
        single = [(x, x, 0.0) for x in (0.0, *(asks[k] / worth[k]))]
        bought = [references.rule_outcome(asks[k], worth[k], rule) for rule in single]
        assert sold[k] == max(value for value, spent in bought if spent <= money[k])


def test_owners_of_one_ratio_accept_it_together():
    """Half of them for half of the money is a lottery between nothing and the ratio."""
    rule = PostedRule.best(np.full((1, 4), 3.0), np.ones((1, 4)), np.array([6.0]))
    assert (rule.low[0], rule.high[0], rule.chance[0], rule.sold[0]) == (0.0, 3.0, 0.5, 2.0)


def test_without_money_or_owners_nothing_is_posted():
    asks = np.array([[1.0, 2.0], [np.inf, np.inf]])
    rule = PostedRule.best(asks, np.ones((2, 2)), np.array([0.0, 5.0]))
    assert not rule.sold.any() and not rule.low.any() and not rule.chance.any()


def test_a_thousand_owners_take_milliseconds():
    asks, worth, money = markets(5, 10, 1000)
    began = time.process_time()
    PostedRule.best(asks, worth, money)
    assert time.process_time() - began < 1.0  # 10 markets; trying all pairs takes minutes


@pytest.mark.parametrize("whole", [False, True])
def test_sales_in_turn_are_those_of_a_walk(whole):
    rng = np.random.default_rng(6)
    asks, worth, money = markets(6, 80, 7, whole)
    asks = np.maximum(asks, 0.5)
    posted = rng.choice([0.5, 1.0, 2.0], asks.shape)
    order = rng.random(asks.shape).argsort(axis=1)
    sells, payment = sell_in_turn(asks, worth, posted, money, order)
    for k in range(80):
        paid = references.sell_in_turn(asks[k], worth[k], posted[k], money[k], order[k])
        assert sells[k].tolist() == [pay is not None for pay in paid]
        assert payment[k] == pytest.approx([pay or 0.0 for pay in paid])


def test_the_last_money_is_offered_for_a_whole_sale():
    asks, worth, posted = np.array([[2.0, 2.0, 1.0]]), np.ones((1, 3)), np.full((1, 3), 4.0)
    sells, payment = sell_in_turn(asks, worth, posted, np.array([5.5]), np.array([[0, 1, 2]]))
    assert sells.tolist() == [[True, False, True]] and payment.tolist() == [[4.0, 0.0, 1.5]]
