"""The best menu for one owner, compared with Myerson's formula and with menus tried one by one."""

import itertools

import numpy as np
import pytest

from flmarket_sim.auctions.best_menu import best_menu

GRID = np.linspace(0.0, 2.0, 21)
HARM = 8.0 / (GRID + 0.5) ** 2


def types(rates, shapes=(lambda e: 2 * e,)):
    """(T, G) costs of all rates and shapes of valuations."""
    return np.stack([rate * shape(GRID) for shape in shapes for rate in rates])


def test_one_type_is_paid_what_it_asks():
    cost = types([1.3])
    found = best_menu(np.ones(1), cost, HARM[None], 2.0)
    expected = (HARM + 2.0 * cost[0]).min()
    assert found.value == pytest.approx(expected)
    assert found.payment[0] == pytest.approx((found.chance[0] * cost[0]).sum())


def test_secret_rates_cost_their_virtual_rates():
    """Discrete Myerson: virtual rate = r_k + (r_k - r_(k-1)) P(rate < r_k) / P(r_k)."""
    rates = np.linspace(0.5, 1.5, 8)
    chance = np.full(8, 1 / 8)
    found = best_menu(chance, types(rates), np.tile(HARM, (8, 1)), 1.5)
    below = np.concatenate([[0.0], np.cumsum(chance)[:-1]])
    # the information rent of a type goes to all types below it
    virtual = rates + np.diff(rates, prepend=rates[0]) * below / chance
    expected = sum(
        p * (HARM + 1.5 * rate * 2 * GRID).min() for p, rate in zip(chance, virtual, strict=True)
    )
    assert found.value == pytest.approx(expected, rel=1e-6)


def choices(curve, cost):
    """What every type takes from a price curve: places of the grid, ties to the larger loss."""
    utility = curve - cost
    return len(GRID) - 1 - utility[:, ::-1].argmax(axis=1)


def test_no_menu_that_is_tried_is_better():
    shapes = (lambda e: 2 * e, lambda e: e**2, lambda e: 2 * np.sqrt(e))
    cost = types([0.6, 1.2], shapes)
    chance = np.full(6, 1 / 6)
    found = best_menu(chance, cost, np.tile(HARM, (6, 1)), 1.0)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        curve = np.concatenate([[0.0], np.cumsum(rng.exponential(rng.uniform(0.02, 0.5), 20))])
        place = choices(curve, cost)
        value = (chance * (HARM[place] + curve[place])).sum()
        assert found.value <= value + 1e-9
    for i, j in itertools.permutations(range(6), 2):
        own = found.payment[i] - (found.chance[i] * cost[i]).sum()
        other = found.payment[j] - (found.chance[j] * cost[i]).sum()
        assert own >= other - 1e-7 and own >= -1e-7


def test_a_larger_secret_costs_more():
    shapes = (lambda e: 2 * e, lambda e: e**2)
    cost = types([0.6, 1.2], shapes)
    chance, harm = np.full(4, 1 / 4), np.tile(HARM, (4, 1))
    same_family = np.arange(4)[:, None] // 2 == np.arange(4) // 2
    known = best_menu(chance, cost, harm, 1.0, confusable=same_family)
    secret = best_menu(chance, cost, harm, 1.0)
    public = best_menu(chance, cost, harm, 1.0, confusable=np.eye(4, dtype=bool))
    assert public.value < known.value < secret.value


def test_nobody_pretends_a_budget_that_she_cannot_deliver():
    cost = types([1.0, 1.0])
    allowed = np.stack([GRID <= 0.5, GRID <= 2.0])
    harm = np.tile(HARM, (2, 1))
    found = best_menu(np.array([0.5, 0.5]), cost, harm, 0.5, allowed)
    assert (found.chance[~allowed] < 1e-9).all()
    apart = best_menu(np.array([0.5, 0.5]), cost, harm, 0.5, allowed, np.eye(2, dtype=bool))
    assert found.value == pytest.approx(apart.value)  # at one rate a smaller budget earns no rent
