"""Menus by virtual costs against the definition: every rate minimises, integrals are sums."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.aggregation.opt_aggr import solve_with_duals
from flmarket_sim.auctions.privacy_markets.virtual_cost import STEPS

RATES = 2000  # of the twin's grid, evenly spaced in the prior


def part(x, u, v, share):
    """The least of l^2 / x - 2 v l + 2 (v - u) max(0, l - W) over weights l, tried one by one."""
    if x == 0:
        return 0.0
    weight = np.unique([v * x if v * x < share else share, max(u * x, share)])
    terms = weight**2 / x - 2 * v * weight + 2 * (v - u) * np.maximum(0, weight - share)
    return terms.min()


def menus_by_definition(sizes, money, low, high, smallest, largest, levels, kappa):
    """(n, L) payments of one market of linear owners, h(e) = 2 e d; infinite for no offer."""
    n, loss = len(sizes), largest * np.arange(levels + 1) / levels
    share, cost = sizes / sizes.sum(), 2 * loss * sizes[:, None]
    rate = low + (high - low) * (np.arange(RATES) + 0.5) / RATES
    virtual = 2 * rate - low
    ends = np.append(loss[1:], np.inf)
    chance = [
        max(0.0, min(ends[cap], largest) - max(loss[cap], smallest)) / (largest - smallest)
        for cap in range(levels)
    ] + [0.0]
    precision = loss**2 / kappa
    inverse = np.full(n, precision[-1])
    for _ in range(STEPS):
        _, u, v = solve_with_duals(inverse[None], share[None])
        parts = np.array([[part(x, u[0], v[0], w) for x in precision] for w in share])

        def sold(i, cap, price, parts=parts):
            terms = parts[i, : cap + 1] + price * virtual[:, None] * cost[i, : cap + 1]
            return terms.argmin(axis=1)

        def spending(price, sold=sold):
            return sum(
                chance[cap] * (virtual * cost[i][sold(i, cap, price)]).mean()
                for i in range(n)
                for cap in range(levels + 1)
            )

        below, above = np.log(1e-12), np.log(1e12)
        for _ in range(45):
            middle = (below + above) / 2
            dear = spending(np.exp(middle)) > money
            below, above = (middle, above) if dear else (below, middle)
        price = np.exp(above)
        mean = np.array(
            [
                sum(chance[cap] * precision[sold(i, cap, price)].mean() for cap in range(levels))
                for i in range(n)
            ]
        )
        inverse = (inverse + mean) / 2 if mean.any() else inverse
    payment = np.full((n, levels), np.inf)
    for i in range(n):
        for cap in range(1, levels + 1):
            place = sold(i, cap, price)
            if place[0] == cap:
                rent = cost[i][place].sum() * (high - low) / RATES
                payment[i, cap - 1] = low * cost[i, cap] + rent
    return payment


@pytest.mark.parametrize(("factor", "kappa"), [(0.05, 8.0), (0.3, 8.0), (0.3, 800.0), (3.0, 8.0)])
def test_menus_are_those_of_the_definition(factor, kappa):
    sizes = np.array([200.0, 50.0, 10.0])
    money = factor * 2 * 2.0 * sizes.sum()
    auction = fm.auctions.create("virtual-cost", levels=5).in_market(error_of_kappa(kappa))
    loss, payment = auction.menus(sizes[None], np.array([money]))
    expected = menus_by_definition(sizes, money, 0.5, 1.5, 0.5, 2.0, 5, kappa)
    assert loss == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    assert (np.isfinite(payment[0]) == np.isfinite(expected)).all() and np.isfinite(expected).any()
    offered = np.isfinite(expected)
    assert payment[0][offered] == pytest.approx(expected[offered], rel=5e-3)


def test_owners_of_the_prior_cost_the_budget_on_average():
    """With money enough for every favourite, so that serving in turn cuts nothing off."""
    rng = np.random.default_rng(0)
    auction = fm.auctions.create("virtual-cost", levels=64)
    size = np.floor(rng.lognormal(3, 1, 40)) + 1
    money = 0.3 * 4 * size.sum()
    loss, payment = auction.menus(size[None], np.array([money]))
    rate, budget = rng.uniform(0.5, 1.5, (2000, 40)), rng.uniform(0.5, 2.0, (2000, 40))
    utility = payment - 2 * rate[..., None] * size[:, None] * loss
    utility[(loss > budget[..., None]) | ~np.isfinite(payment)] = -np.inf
    best = utility.argmax(axis=2)
    chosen = np.take_along_axis(np.broadcast_to(payment, utility.shape), best[..., None], 2)[..., 0]
    paid = np.where(utility.max(axis=2) >= 0, chosen, 0.0).sum(axis=1)
    assert paid.mean() == pytest.approx(money, rel=0.02)


def test_where_nothing_is_secret_owners_get_their_costs():
    options = {"low": 1.0, "high": 1.0, "smallest": 2.0, "largest": 2.0, "levels": 4}
    auction = fm.auctions.create("virtual-cost", **options)
    loss, payment = auction.menus(np.array([[10.0, 20.0]]), np.array([1000.0]))
    offered = np.isfinite(payment[0])
    assert offered[:, -1].all()
    cost = 2 * loss * np.array([[10.0], [20.0]])
    assert payment[0][offered] == pytest.approx(cost[offered])


def test_more_money_buys_no_worse_a_gradient_on_average():
    rng = np.random.default_rng(1)
    from tests.support.profiles import random_profiles

    truth = random_profiles(rng, 60, 8, ("linear",))
    errors = []
    for factor in (0.1, 0.5, 2.0):
        outcome = fm.auctions.create("virtual-cost").decide(
            truth.bids(), factor * truth.total_value(), rng
        )
        weights = fm.aggregation.create("opt-aggr").weights(outcome.privacy_loss, truth.data_size)
        error = fm.aggregation.error_bound(weights, outcome.privacy_loss, truth.data_size)
        errors.append(np.median(error))
    assert errors[0] > 1.2 * errors[1] > 1.2**2 * errors[2]
