"""An auction is played in one place: lots, means and utilities agree with its plain outcomes."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.auctions import play
from flmarket_sim.auctions.auction import Outcome
from flmarket_sim.auctions.play import Player, draws_numbers, expected_utility

TRUTH = fm.Profiles(
    [["linear", "step", "sqrt"]] * 2,
    [[1.0, 0.7, 1.2], [0.9, 1.1, 0.6]],
    [[1.0, 2.0, 0.5], [1.5, 0.8, 1.0]],
    [[20.0, 5.0, 60.0], [10.0, 40.0, 30.0]],
)
BUDGET = 0.6 * TRUTH.total_value()


class Coin:
    """Buys everything of each owner with chance 1/2."""

    name, guarantees = "coin", {}

    def decide(self, bids, budget, rng):
        wins = rng.random(bids.shape) < 0.5
        price = np.minimum(bids.full_value, budget[:, None] / bids.shape[1])
        return Outcome(np.where(wins, bids.privacy_budget, 0.0), np.where(wins, price, 0.0))


class StatedCoin(Coin):
    """The same lottery, which states its chances."""

    def expected(self, bids, budget):
        price = np.minimum(bids.full_value, budget[:, None] / bids.shape[1])
        return np.full((*bids.shape, 2), 0.5), np.stack([np.zeros_like(price), price], axis=-1)


def test_a_deterministic_auction_has_one_lot_its_outcome():
    auction, bids = fm.auctions.create("all-in"), TRUTH.bids()
    player = Player.of(auction, bids, BUDGET)
    (lot,) = player.lots(bids, BUDGET)
    outcome = auction.decide(bids, BUDGET, None)
    assert not draws_numbers(auction, bids, BUDGET) and not player.sampled
    assert (lot.chance == 1).all() and (lot.payment == outcome.payment).all()
    utility, cost = expected_utility(auction, TRUTH, bids, BUDGET)
    assert (utility == TRUTH.utility(outcome.privacy_loss, outcome.payment)).all()
    assert (cost == TRUTH.value(outcome.privacy_loss)).all()


def test_stated_chances_are_the_limit_of_draws():
    bids = TRUTH.bids()
    stated, drawn = (
        Player.of(auction, bids, BUDGET, draws=4096) for auction in (StatedCoin(), Coin())
    )
    assert drawn.sampled and not stated.sampled and stated.random
    for exact, mean in zip(stated.means(bids, BUDGET), drawn.means(bids, BUDGET), strict=True):
        assert mean == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("numbers", [1, 20, 50_000])
def test_draws_in_one_pass_are_the_draws_one_by_one(monkeypatch, numbers):
    monkeypatch.setattr(play, "AT_ONCE", numbers)
    bids = TRUTH.bids()
    player = Player.of(fm.auctions.create("greedy-ii"), bids, BUDGET, seed=5, draws=10)
    together = list(player.outcomes(bids, BUDGET))
    assert len(together) == 10 and player.many is not None
    for draw, outcome in enumerate(together):
        alone = player.decide(bids, BUDGET, draw)
        assert (outcome.privacy_loss == alone.privacy_loss).all()
        assert (outcome.payment == alone.payment).all()


def test_the_lots_of_a_market_have_chances_that_sum_to_one():
    bids = TRUTH.take([0]).bids()
    for auction in (Coin(), StatedCoin(), fm.auctions.create("all-in")):
        player = Player.of(auction, bids, BUDGET[:1])
        lots = player.lots_of_market(bids, float(BUDGET[0]), 128)
        assert lots.chance.sum(axis=0) == pytest.approx(np.ones(3))
        assert all(column.shape == lots.chance.shape for column in lots)


class Half:
    """Buys everything on half of the records that each owner reports."""

    name, guarantees = "half", {}

    def decide(self, bids, budget, rng):
        price = np.minimum(bids.full_value, budget[:, None] / bids.shape[1])
        return Outcome(bids.privacy_budget.copy(), price, bids.data_size / 2)


def test_repeated_draws_of_one_market_are_rows_and_one_where_nothing_is_drawn():
    one, money = TRUTH.bids().take([0]), float(BUDGET[0])
    lots = Player.of(Coin(), one, BUDGET[:1]).repeated(one, money, 5)
    assert lots.payment.shape == (5, 3) and (lots.chance == 1 / 5).all()
    assert len(np.unique(lots.payment, axis=0)) > 1
    lots = Player.of(Half(), one, BUDGET[:1]).repeated(one, money, 5)
    assert lots.payment.shape == (1, 3) and (lots.chance == 1).all()
    assert (lots.data_size == one.data_size / 2).all()


class Nothing(type(fm.auctions.create("greedy-ii"))):
    """Replaces `decide` of a lottery that decides its draws together."""

    def decide(self, bids, budget, rng):
        rng.random()
        return Outcome(np.zeros(bids.shape), np.zeros(bids.shape))


class NothingStated(type(fm.auctions.create("gravin-2"))):
    """Replaces `decide` of a lottery that states its chances."""

    decide = Nothing.decide


class TwoOfThem(Coin):
    """Returns too few outcomes."""

    def decide_draws(self, bids, budget, rngs):
        return [self.decide(bids, budget, rng) for rng in rngs[:-1]]


@pytest.mark.parametrize("kind", [Nothing, NothingStated])
def test_who_replaces_decide_alone_is_played_by_it(kind):
    bids, auction = TRUTH.bids(), kind()
    player = Player.of(auction, bids, BUDGET, draws=4)
    assert player.sampled
    assert all(not outcome.privacy_loss.any() for outcome in player.outcomes(bids, BUDGET))
    assert not expected_utility(auction, TRUTH, bids, BUDGET)[1].any()


def test_an_outcome_for_each_generator_is_wanted():
    player = Player.of(TwoOfThem(), TRUTH.bids(), BUDGET)
    with pytest.raises(fm.errors.ContractError, match="63 outcomes for 64"):
        list(player.outcomes(TRUTH.bids(), BUDGET))
