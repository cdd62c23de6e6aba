"""Contribution rules against sums over all orders, and how money follows from values."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flmarket_sim import aggregation
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.aggregation.weighted_sum import WeightedSum
from flmarket_sim.contribution.contribution_rule import Contributions, check_contributions
from flmarket_sim.contribution.games import ErrorGame, LossGame
from flmarket_sim.contribution.money_shares import positive_shares, shares_of_sellers
from flmarket_sim.errors import ContractError
from flmarket_sim.plugins.registry import contributions, robust_rules

SEEDS = st.integers(0, 10**6)
RNG = np.random.default_rng(0)


class TableGame:
    """Coalitions are worth what a table of random numbers says."""

    def __init__(self, players, seed):
        self.players = players
        self.table = np.random.default_rng(seed).normal(size=2**players)

    def worth(self, member):
        return self.table[member @ 2 ** np.arange(self.players)]


def by_all_orders(game):
    """The mean of what each player adds, over every order."""
    added = []
    for order in permutations(range(game.players)):
        inside = np.zeros(game.players, bool)
        row = np.zeros(game.players)
        for player in order:
            before = game.worth(inside[None])[0]
            inside[player] = True
            row[player] = game.worth(inside[None])[0] - before
        added.append(row)
    return np.mean(added, axis=0)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), SEEDS)
def test_exact_shapley_values_are_means_over_all_orders(players, seed):
    game = TableGame(players, seed)
    made = contributions.create("shapley").values(game, RNG)
    assert made.value == pytest.approx(by_all_orders(game))
    assert (made.standard_error == 0).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), SEEDS)
def test_shapley_values_sum_to_what_all_are_worth_beyond_nobody(players, seed):
    game = TableGame(players, seed)
    all_and_nobody = np.array([[True] * players, [False] * players])
    whole, nobody = game.worth(all_and_nobody)
    for options in ({"exact": 12}, {"exact": 1, "permutations": 5}):
        made = contributions.create("shapley", **options).values(game, np.random.default_rng(seed))
        assert made.value.sum() == pytest.approx(whole - nobody)


def test_sampled_values_are_as_far_off_as_their_standard_errors_say():
    game = TableGame(6, 3)
    exact = by_all_orders(game)
    rule = contributions.create("shapley", exact=1, permutations=40)
    runs = [rule.values(game, np.random.default_rng(seed)) for seed in range(300)]
    off = np.array([run.value - exact for run in runs])
    stated = np.array([run.standard_error for run in runs])
    assert np.abs(off.mean(axis=0)) == pytest.approx(0, abs=5 * off.std() / 300**0.5)
    assert np.sqrt(np.square(off).mean()) == pytest.approx(
        np.sqrt(np.square(stated).mean()), rel=0.1
    )


@given(st.integers(1, 8), SEEDS)
def test_leave_one_out_is_what_is_missing_without_a_seller(players, seed):
    game = TableGame(players, seed)
    made = contributions.create("leave-one-out").values(game, RNG)
    everybody = np.ones(players, bool)
    for player in range(players):
        without = everybody.copy()
        without[player] = False
        missing = game.worth(everybody[None])[0] - game.worth(without[None])[0]
        assert made.value[player] == pytest.approx(missing)


def purchase(rule="opt-aggr"):
    loss, size = np.array([0.5, 0.0, 2.0, 1.0]), np.array([10.0, 20.0, 5.0, 30.0])
    sellers = np.array([0, 2, 3])
    return ErrorGame(aggregation.create(rule), error_of_kappa(20.0), loss, size, sellers)


def test_a_coalition_is_worth_minus_the_error_bound_of_its_purchase():
    game = purchase()
    member = np.array([[True, False, True], [True, True, True], [False] * 3])
    found = game.worth(member)
    for row, inside in zip(found[:2], member[:2], strict=True):
        loss = np.zeros((1, 4))
        loss[0, game.sellers[inside]] = game.privacy_loss[game.sellers[inside]]
        variance = np.where(loss > 0, 20.0 / np.where(loss > 0, loss, 1.0) ** 2, np.inf)
        size = game.data_size[None]
        weights = game.rule.weights(loss, size, 1.0, variance)
        assert row == pytest.approx(
            -aggregation.error_bound_parts(weights, loss, size, 1.0, variance).total[0]
        )
    assert found[2] == pytest.approx(game.worth(np.eye(3, dtype=bool)).min())


def test_under_opt_aggr_no_seller_adds_error():
    for name in ("shapley", "leave-one-out"):
        assert (contributions.create(name).values(purchase(), RNG).value > -1e-9).all()


def loss_game(robust, messages, asked):
    def loss_of(gradient, bound):
        asked.append((gradient, bound))
        return 1.0 if gradient is None else float(np.square(gradient - 1.0).sum())

    return LossGame(purchase(), error_of_kappa(20.0), robust, messages, loss_of)


@pytest.mark.parametrize("name", ["weighted-sum", "coordinate-median"])
def test_a_coalition_is_worth_minus_the_loss_after_a_step_with_its_messages(name):
    messages = np.arange(6.0).reshape(3, 2)
    asked = []
    game = loss_game(robust_rules.create(name), messages, asked)
    member = np.array([[False] * 3, [False, True, False], [True, True, True]])
    worth = game.worth(member)
    (none, _), (alone, _), (whole, bound) = asked
    assert none is None and worth[0] == -1.0
    assert alone == pytest.approx(messages[1])
    assert worth == pytest.approx([-1.0, *(-np.square(g - 1).sum() for g in (alone, whole))])
    assert -bound == pytest.approx(game.purchase.worth(member[2:])[0])


def test_a_message_that_points_away_has_a_negative_contribution():
    messages = np.array([[1.0, 1.0], [1.0, 1.0], [-9.0, -9.0]])
    game = loss_game(WeightedSum(), messages, [])
    for name in ("shapley", "leave-one-out"):
        value = contributions.create(name).values(game, RNG).value
        assert value[2] < 0 < value[1]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_shares_are_of_one_whole_or_of_nothing(values):
    value = np.array(values)
    share = shares_of_sellers(value, 0.0)
    assert (share >= 0).all() and (share[value < 0] == 0).all()
    nothing = (value <= 0).all() and (value < 0).any()
    assert share.sum() == pytest.approx(0.0 if nothing else 1.0)


def test_sellers_who_cannot_be_told_apart_share_alike_and_rounding_tells_nobody_apart():
    assert shares_of_sellers(np.array([1e-15, -1e-15]), 1e-12) == pytest.approx([0.5, 0.5])
    assert shares_of_sellers(np.array([0.0]), 1e-12) == pytest.approx([1.0])
    assert positive_shares(np.array([[3.0, -1.0, 1.0]])) == pytest.approx(
        np.array([[0.75, 0, 0.25]])
    )


@pytest.mark.parametrize(
    "made",
    [
        np.ones(2),
        (np.ones(2),),
        (np.ones(3), np.zeros(3)),
        (np.array([1.0, np.nan]), np.zeros(2)),
        (np.ones(2), np.array([0.0, -1.0])),
    ],
)
def test_what_are_no_contributions_is_refused(made):
    with pytest.raises(ContractError, match="contribution 'mine'"):
        check_contributions("mine", made, 2)
    assert check_contributions("mine", Contributions(np.ones(2), np.zeros(2)), 2).value.sum() == 2
