"""Menus in turn: whom a report can help, held against a play of one market and owner at a time."""

from itertools import pairwise

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import coordinate_error, error_of_kappa
from flmarket_sim.auctions.learned.level_outcome import ReportTensors, outcome_of
from flmarket_sim.auctions.learned.menu_network import KNOTS, MenuNetwork
from flmarket_sim.auctions.learned.regime import regime_note
from tests.support.profiles import random_profiles


def network(levels=4, hidden=12, looks_ahead=True):
    torch.manual_seed(3)
    made = MenuNetwork(levels, hidden, looks_ahead=looks_ahead)
    for parameter in made.offer[-1].parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made.eval()


def reports(markets=40, n=5, levels=4, seed=0, kappa=8.0, by_size=0.0):
    truth = random_profiles(np.random.default_rng(seed), markets, n)
    truth.data_size[:] += np.arange(n) / 100  # no two alike
    bids = truth.bids(levels)
    money = np.random.default_rng(seed).uniform(0.1, 2.0, markets) * truth.total_value()
    public = (money, np.full(markets, kappa), np.full(markets, by_size))
    columns = (bids.values, bids.privacy_budget, bids.data_size, *public)
    return ReportTensors(*(torch.from_numpy(np.array(column)) for column in columns))


def played_slowly(made, market):
    """Levels and payments of one market, owner by owner, from its menus."""
    values, sizes = market.values[0].numpy(), market.data_size[0].numpy()
    money = float(market.budget[0])
    menus = made(*market).payment[0].detach().numpy()
    left, level, paid = money, np.zeros(len(sizes), int), np.zeros(len(sizes))
    for i in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        assert menus[i, -1] <= left
        best = 0.0
        for m in range(values.shape[1]):
            if menus[i, m] - values[i, m] >= best:
                best, level[i], paid[i] = menus[i, m] - values[i, m], m + 1, menus[i, m]
        left -= paid[i]
    return level, paid


def test_batches_are_played_as_markets_one_by_one():
    made, many = network(), reports()
    menus = made(*many)
    for k in range(len(many.budget)):
        market = ReportTensors(*(column[k : k + 1] for column in many))
        level, _ = played_slowly(made, market)
        assert menus.level[k].tolist() == level.tolist()
        alone = made(*market).payment[0]
        assert menus.payment[k].detach().numpy() == pytest.approx(alone.detach().numpy(), rel=1e-5)


def test_payments_are_straight_between_the_knots_of_one_curve():
    """Owners alike but for their privacy budgets come first in their markets: one curve for all."""
    made = network(levels=4)
    one = reports(markets=1)
    largest = int(one.data_size[0].argmax())
    loss, paid = [], []
    for budget in np.linspace(0.1, 2.0, 40):
        budgets = one.privacy_budget.clone()
        budgets[0, largest] = budget
        menus = made(*one._replace(privacy_budget=budgets))
        loss += [m * budget / 4 for m in range(1, 5)]
        paid += menus.payment[0, largest].tolist()
    knots = np.arange(KNOTS + 1) * 2.0 / KNOTS
    order = np.argsort(loss)
    loss, paid = np.array(loss)[order], np.array(paid)[order]
    assert (np.diff(paid) >= -1e-9).all()
    for low, high in pairwise(knots):
        inside = (loss >= low) & (loss <= high)
        if inside.sum() > 2:
            fit = np.polyfit(loss[inside], paid[inside], 1)
            assert np.polyval(fit, loss[inside]) == pytest.approx(paid[inside], rel=1e-5)


def test_no_report_of_the_largest_owner_changes_her_menu():
    made, truth = network(), reports()
    rows, largest = torch.arange(40), truth.data_size.argmax(1)
    values = truth.values.clone()
    values[rows, largest] *= torch.rand(40, 1, dtype=torch.float64) * 5
    lied = made(*truth._replace(values=values))
    assert torch.equal(lied.payment[rows, largest], made(*truth).payment[rows, largest])


def test_nobodys_values_change_her_own_menu_if_it_does_not_look_ahead():
    made, truth, rows = network(looks_ahead=False), reports(), torch.arange(40)
    for owner in range(5):
        values = truth.values.clone()
        values[:, owner] *= 5 * torch.rand(40, 1, dtype=torch.float64)
        lied = made(*truth._replace(values=values))
        assert torch.equal(lied.payment[rows, owner], made(*truth).payment[rows, owner])


def test_a_report_moves_a_menu_only_through_those_before_its_owner():
    """If all before her sell the same for the same, her menu is the same."""
    made, truth = network(), reports()
    order = truth.data_size.argsort(1, descending=True)
    honest, third = made(*truth), order[:, 2]
    rows = torch.arange(40)
    values = truth.values.clone()
    values[rows, third] *= 0.2
    lied = made(*truth._replace(values=values))
    before = order[:, :2]
    moved = (lied.payment - honest.payment).abs().amax(2).gather(1, before).amax(1) > 0
    changed = (lied.payment - honest.payment)[rows, third].abs().amax(1) > 0
    assert bool(moved.any())  # those before her see her report
    assert not bool((changed & ~moved).any())


@pytest.mark.parametrize("change", [{"kappa": 4880.0}, {"by_size": 1.0}])
def test_menus_depend_on_the_regime_and_the_rule(change):
    made = network()
    assert not torch.allclose(made(*reports(**change)).payment, made(*reports()).payment)


def test_the_chances_of_a_lot_are_the_mean_over_the_sides_of_the_coin():
    made, many = network(), reports(markets=10, n=3)
    outcome = outcome_of(made, many, deterministic=False)
    assert outcome.chance.sum(-1).numpy() == pytest.approx(1.0)
    utility = torch.zeros(10, 3, dtype=torch.float64)
    for upwards in (False, True):
        menus = made(*many, None, torch.full((10,), upwards))
        payment = torch.nn.functional.pad(menus.payment, (1, 0))
        utility = utility + payment.gather(2, menus.level[..., None])[..., 0] / 2
    expected = (outcome.chance * outcome.payment).sum(-1)
    assert expected.detach().numpy() == pytest.approx(utility.detach().numpy(), rel=1e-3)


def test_a_market_sets_the_regime_of_its_own_copy_only():
    auction = fm.auctions.create("dm-regretnet")
    there = auction.in_market(error_of_kappa(4880.0))
    assert (auction.trained_kappa, there.trained_kappa) == (8.0, 4880.0)
    truth = random_profiles(np.random.default_rng(0), 50, 10)
    rng, money = np.random.default_rng(0), 0.5 * truth.total_value()
    here, far = (each.decide(truth.bids(), money, rng) for each in (auction, there))
    assert not np.array_equal(here.privacy_loss, far.privacy_loss)


def test_menus_have_no_note_within_their_regimes():
    for name in ("regretnet", "m-regretnet", "dm-regretnet"):
        auction = fm.auctions.create(name)
        for near in (coordinate_error(3.0), error_of_kappa(4920.0), error_of_kappa(1.5e5)):
            assert regime_note(auction, near) is None
        assert "trained for kappa = 1e+05" in regime_note(auction, error_of_kappa(1e6))
