"""Certified gains: exact for menus, never below what a search finds, and no mechanism can pretend
to be a menu."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.auctions.auction import Offer, Outcome
from flmarket_sim.auctions.learned.seq_price import SeqPrice
from flmarket_sim.errors import ContractError
from flmarket_sim.owners.valuation import FAMILIES
from flmarket_sim.strategy.certified.box_search import BoxEffort, largest_value
from flmarket_sim.strategy.certified.certified_gain import certified_gain
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.menus import menu_points, offer_to
from flmarket_sim.strategy.certified.textbook_rules import bounds_of_rule
from tests.strategy.test_probe import tiny

RULES = ("all-in", "all-in-critical", "proportional-share", "pay-as-bid", "posted-price")
FINE = BoxEffort(nodes=6_000, at_once=512)


SALES_IN_TURN = {
    "seq-price": {"size": "certified"},
    "seq-price reported": {"size": "reported"},
    "record-price": {"weights": "paper-part"},
    "record-price all": {"weights": "paper-all"},
    "virtual-cost": {},
}


def sale_in_turn(name, kappa=None):
    auction = fm.auctions.create(name.split()[0], **SALES_IN_TURN[name])
    if kappa is None:
        return auction
    return auction.in_market(MarketError("vector", lambda loss: kappa / loss**2))


@pytest.mark.parametrize("name", SALES_IN_TURN)
@pytest.mark.parametrize("kappa", [None, 3e4])
def test_nobody_gains_anything_where_menus_are_posted(name, kappa):
    truth, money = tiny(1, markets=3)
    proved = certified_gain(sale_in_turn(name, kappa), truth, money)
    assert proved.method == "menu"
    assert (
        np.abs(proved.utility_bound - proved.truthful_utility).max() <= 1e-6 * money.max()
    )  # single precision


def test_the_best_point_of_a_menu_is_the_best_of_many_reports():
    truth, money = tiny(2, markets=2)
    auction = fm.auctions.create("seq-price", size="reported")
    owner = LyingOwner.of(truth, truth.bids(), money, 1, 2, False)
    loss, payment, records = menu_points(owner, offer_to(auction, owner, owner.bids.data_size))
    best = max((payment - owner.cost(loss, records)).max(), 0.0)
    found = fm.strategy.probe(auction, truth, money, effort="quick")
    assert found.best_utility[1, 2] == pytest.approx(best, abs=1e-6 * money[1])


class MovesWithTheReport(SeqPrice):
    """Pretends to sell in turn: pays one per cent more to whoever reports higher values."""

    def decide(self, bids, budget, rng):
        outcome = super().decide(bids, budget, rng)
        bonus = 1.0 + 0.01 * bids.full_value / (1.0 + bids.full_value)
        return Outcome(outcome.privacy_loss, outcome.payment * bonus, outcome.data_size)


class MovesWithTheSize(SeqPrice):
    """Pretends that its offers do not read sizes, and reads them."""

    def ask(self, data_size, budget):
        return _ReadsSizes(super().ask(data_size, budget), data_size)


class _ReadsSizes:
    def __init__(self, asking, data_size):
        self.asking, self.data_size = asking, data_size

    def __getattr__(self, name):
        return getattr(self.asking, name)

    def __iter__(self):
        for offer in self.asking:
            more = 1.0 + 0.001 * self.data_size[np.arange(len(offer.owner)), offer.owner]
            payment = offer.payment * more[:, None]
            yield Offer(offer.owner, offer.privacy_loss, payment, offer.money)


@pytest.mark.parametrize(
    ("auction", "words"),
    [
        (lambda: MovesWithTheReport(), "not on the menu"),
        (lambda: MovesWithTheSize(size="reported"), "moves when she reports"),
    ],
)
def test_an_auction_that_only_pretends_to_be_a_menu_is_caught(auction, words):
    truth, money = tiny(1, markets=3)
    with pytest.raises(ContractError, match=words):
        certified_gain(auction(), truth, money)


@pytest.mark.parametrize("name", [*RULES, "fair-query"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_no_search_finds_more_than_is_certified(name, n):
    truth, money = tiny(n, markets=4, n=n)
    auction = fm.auctions.create(name)
    found = fm.strategy.probe(auction, truth, money, effort="quick")
    proved = certified_gain(auction, truth, money, effort=FINE)
    assert proved.method == "rule"
    assert (proved.utility_bound >= found.best_utility - 1e-9 * money[:, None]).all()


@pytest.mark.parametrize("name", ["all-in", "all-in-critical", "proportional-share"])
def test_single_minded_owners_are_certified_to_the_gain_that_the_search_finds(name):
    truth, money = tiny(7, markets=4, n=4, families=("step",))
    auction = fm.auctions.create(name)
    found = fm.strategy.probe(auction, truth, money)
    proved = certified_gain(auction, truth, money, effort=FINE, known=found.best_utility)
    # Amounts are whole records times a budget for the search, and any number for the bound.
    assert (proved.relative_gain - found.relative_gain <= 0.3).all()
    assert np.median(proved.relative_gain - found.relative_gain) <= 2e-3
    if name != "all-in":
        assert proved.relative_gain.max() <= 2e-3


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("value", ["records-loss", "loss-squared"])
def test_pieces_bound_every_payment_of_random_reports(name, value):
    rng = np.random.default_rng(11)
    options = {"value": value} if name in RULES[:3] else {}
    auction = fm.auctions.create(name, **options)
    truth, money = tiny(5, markets=1, n=5)
    owner = LyingOwner.of(truth, truth.bids(), money, 0, 3, False)
    bounds = bounds_of_rule(auction, owner)
    count = 2_000
    bids = owner.bids.take(np.zeros(count, np.int64))
    low, high = owner.limits()
    budget, size = np.exp(rng.uniform(low, high, (count, 2))).T
    size = np.minimum(size, owner.types.data_size)
    values = bids.values.copy()
    top = truth.bids().full_value[0, 3] * np.exp(rng.uniform(-4, 4, (count, 1)))
    values[:, 3] = np.sort(top * rng.random((count, 8)), axis=1)
    budgets, sizes = bids.privacy_budget.copy(), bids.data_size.copy()
    budgets[:, 3], sizes[:, 3] = np.minimum(budget, owner.types.privacy_budget), size
    reports = fm.BidBatch(values, budgets, sizes)
    outcome = auction.decide(reports, np.full(count, money[0]), rng)
    sold = np.maximum(outcome.privacy_loss[:, 3], 1e-9)
    amount = bounds.amount(sold, size)
    most = bounds.pieces.most(amount, amount)
    assert (outcome.payment[:, 3] <= most + 1e-6 * money[0]).all()
    assert (outcome.payment[:, 3] > 0).any()


def test_an_auction_of_which_nothing_is_known_gets_the_trivial_bound():
    class Generous:
        name = "generous"
        guarantees = dict.fromkeys(("truthful", "individually_rational", "budget_feasible"), "none")

        def decide(self, bids, budget, rng):
            share = np.repeat(budget[:, None] / bids.shape[1], bids.shape[1], axis=1)
            return Outcome(bids.privacy_budget, share)

    truth, money = tiny(1, markets=2, families=("step", "linear"))
    proved = certified_gain(Generous(), truth, money)
    assert proved.method == "trivial"
    step = truth.family == FAMILIES.index("step")
    cost = truth.value(truth.privacy_budget)
    expected = np.where(step, money[:, None] - cost, money[:, None])
    assert proved.utility_bound == pytest.approx(np.maximum(expected, 0.0))


@pytest.mark.parametrize("name", ["all-in", "dm-regretnet", "seq-price"])
def test_a_buyer_without_money_lets_nobody_gain(name):
    truth, money = tiny(1, markets=2)
    proved = certified_gain(fm.auctions.create(name), truth, 0.0 * money)
    assert proved.gain.max() == 0.0


def test_branch_and_bound_finds_the_largest_value_of_a_function():
    def bounds(low, high):
        """-(x - 0.3)^2 - |y|, bounded by its value at the nearest point."""
        near = np.clip([0.3, 0.0], low, high)
        value = -((near[:, 0] - 0.3) ** 2) - np.abs(near[:, 1])
        return value + 0.1 * (high - low).sum(1), high - low

    box = np.array([-1.0, -1.0]), np.array([1.0, 2.0])
    best = largest_value(bounds, *box, known=0.0, tolerance=1e-3, effort=BoxEffort(nodes=10_000))
    assert 0.0 <= best.bound <= 1e-3
    few = largest_value(bounds, *box, known=0.0, tolerance=1e-3, effort=BoxEffort(nodes=10))
    assert few.bound > best.bound and few.nodes >= 10
