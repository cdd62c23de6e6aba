"""What the mechanisms of privacy markets declare holds in random markets, and at the edges."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.testing import check_auction
from tests.support.profiles import random_profiles

ALL = (
    "vcg-k", "csra", "mfg-pricing", "stackelberg", "contract-menu", "shapley-pay", "fmore",
    "virtual-cost",
)  # fmt: skip
EVERYBODY_SELLS = ("mfg-pricing", "shapley-pay")
FAMILIES = ("linear", "quadratic", "sqrt", "exponential", "step")


def decided(name, bids, money, **options):
    auction = fm.auctions.create(name, **options)
    return auction.decide(bids, np.asarray(money, float), np.random.default_rng(0))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_budgets_are_kept_and_nobody_is_underpaid_where_this_is_declared(name, n):
    rng = np.random.default_rng(n)
    truth = random_profiles(rng, 200, n, FAMILIES)
    money = rng.uniform(0.02, 3.0, 200) * truth.total_value()
    outcome = decided(name, truth.bids(), money)
    assert (outcome.privacy_loss <= truth.privacy_budget).all()
    assert (outcome.payment.sum(axis=1) <= money * (1 + 1e-9)).all()
    assert (outcome.payment[outcome.privacy_loss == 0] == 0).all()
    utility = truth.utility(outcome.privacy_loss, outcome.payment)
    if fm.auctions.create(name).guarantees["individually_rational"] == "any":
        assert (utility >= -1e-9 * money[:, None]).all()
    else:
        assert n == 1 or (utility < -0.01 * money[:, None]).any()


@pytest.mark.parametrize("name", ALL)
def test_without_money_nobody_is_paid(name):
    bids = random_profiles(np.random.default_rng(6), 4, 5, FAMILIES).bids()
    outcome = decided(name, bids, np.zeros(4))
    assert not outcome.payment.any()
    assert outcome.privacy_loss.any() == (name in EVERYBODY_SELLS)


@pytest.mark.parametrize("name", ["vcg-k", "csra"])
def test_the_dearest_owner_never_sells_so_one_alone_sells_nothing(name):
    alone = fm.BidBatch([[[1.0]]], [[1.0]], [[1.0]])
    assert not decided(name, alone, [100.0]).payment.any()
    three = fm.BidBatch([[[1.0], [2.0], [3.0]]], [[1.0] * 3], [[1.0] * 3])
    assert (decided(name, three, [100.0]).privacy_loss[0] > 0).tolist() == [True, True, False]


@pytest.mark.parametrize("name", EVERYBODY_SELLS)
def test_one_owner_alone_gets_all_of_the_money(name):
    alone = fm.BidBatch([[[1.0]]], [[1.0]], [[1.0]])
    assert decided(name, alone, [100.0]).payment.tolist() == [[100.0]]


def lies(truth, rng, certified):
    """Reports as another type would give them: of one owner, the same place in every market."""
    family, rate, budget, size = (np.array(column) for column in truth.types)
    i = int(rng.integers(truth.shape[1]))
    rate[:, i] *= rng.choice([1e-6, *rng.uniform(0.2, 4.0, 3)])
    if rng.random() < 0.5:
        family[:, i] = rng.permutation(family[:, i])
    if rng.random() < 0.5:
        budget[:, i] *= rng.uniform(0.05, 1.0)
    if not certified and rng.random() < 0.5:
        size[:, i] = np.maximum(1, np.floor(size[:, i] * rng.uniform(0.05, 1.0)))
    return i, Profiles(family, rate, budget, size)


def best_gains(name, truth, money, tries, rng):
    """(K,) the largest gain by a misreport, over what the liar's whole budget is worth."""
    auction = fm.auctions.create(name)
    certified = "data_size" in getattr(auction, "certified", ())
    honest = decided(name, truth.bids(), money)
    base = truth.utility(honest.privacy_loss, honest.payment)
    worth = truth.value(truth.privacy_budget)
    best = np.zeros(len(money))
    for _ in range(tries):
        i, lie = lies(truth, rng, certified)
        outcome = decided(name, lie.bids(), money)
        utility = truth.utility(outcome.privacy_loss, outcome.payment, lie.data_size)
        best = np.maximum(best, (utility - base)[:, i] / worth[:, i])
    return best


@pytest.mark.parametrize("name", ["contract-menu", "virtual-cost"])
def test_no_misreport_pays_whatever_the_valuation(name):
    assert fm.auctions.create(name).guarantees["truthful"] == "any"
    rng = np.random.default_rng(7)
    truth = random_profiles(rng, 60, 4, FAMILIES)
    money = rng.uniform(0.1, 2.0, 60) * truth.total_value()
    assert best_gains(name, truth, money, 25, rng).max() <= 1e-9


@pytest.mark.parametrize("name", ["stackelberg", "mfg-pricing"])
def test_no_misreport_of_a_single_minded_owner_pays(name):
    assert fm.auctions.create(name).guarantees["truthful"] == "single-minded"
    rng = np.random.default_rng(8)
    truth = random_profiles(rng, 300, 5, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    assert best_gains(name, truth, money, 150, rng).max() <= 1e-9


@pytest.mark.parametrize(
    ("name", "families"),
    [
        ("vcg-k", FAMILIES), ("csra", ("step",)), ("fmore", ("step",)), ("shapley-pay", FAMILIES),
        ("stackelberg", ("linear", "quadratic")), ("mfg-pricing", ("linear",)),
    ],
)  # fmt: skip
def test_the_same_search_finds_misreports_where_none_are_excluded(name, families):
    rng = np.random.default_rng(9)
    truth = random_profiles(rng, 60, 5, families)
    money = rng.uniform(0.1, 1.5, 60) * truth.total_value()
    assert best_gains(name, truth, money, 60, rng).max() > 0.01


def test_a_stackelberg_price_for_step_owners_is_a_proportional_share():
    rng = np.random.default_rng(10)
    truth = random_profiles(rng, 300, 8, ("step",))
    money = rng.uniform(0.1, 1.5, 300) * truth.total_value()
    ours, theirs = (
        decided(name, truth.bids(), money) for name in ("stackelberg", "proportional-share")
    )
    assert (ours.privacy_loss == theirs.privacy_loss).all()
    assert ours.payment == pytest.approx(theirs.payment)


def test_menus_are_served_in_order_while_the_money_lasts():
    """Three equal owners and money for two of the first contract: the third gets a smaller one."""
    bids = fm.Profiles([["linear"] * 3], [[0.5] * 3], [[2.0] * 3], [[10.0] * 3]).bids()
    auction = fm.auctions.create("contract-menu", types=[1.0, 2.0])
    loss, reward = auction.menu()
    assert loss.tolist() == [2.0, 1.0] and reward.tolist() == [2 * 2 + 2, 2 * 2]
    money = 30 * reward.mean()  # the menu is made for this: s = 1
    outcome = decided("contract-menu", bids, [money], types=[1.0, 2.0])
    assert outcome.privacy_loss[0].tolist() == [2.0, 2.0, 0.0]
    assert outcome.payment[0].tolist() == [60.0, 60.0, 0.0]
    cheaper = decided("contract-menu", bids, [money * (160 / 150)], types=[1.0, 2.0])
    assert cheaper.privacy_loss[0].tolist() == [2.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("contract-menu", {"types": []}, "types must be"),
        ("contract-menu", {"types": [1.0, 1.0]}, "rising"),
        ("contract-menu", {"types": [0.0, 1.0]}, "positive"),
        ("contract-menu", {"family": "step"}, "family"),
        ("virtual-cost", {"low": 2.0, "high": 1.0}, "low <= high"),
        ("virtual-cost", {"smallest": 3.0}, "smallest <= largest"),
        ("vcg-k", {"loss": 0.0}, "loss"),
        ("fmore", {"winners": 0}, "winners"),
        ("fmore", {"value": "recrods-loss"}, "records-loss"),
        ("shapley-pay", {"exact": 40}, "exact"),
        ("csra", {"sells": "half"}, "sells"),
    ],
)
def test_wrong_options_are_refused_by_name(name, options, message):
    with pytest.raises(InputError, match=message):
        fm.auctions.create(name, **options)


def test_options_can_be_typed():
    assert fm.auctions.named("contract-menu[types=[1.0, 2.0]]").types == (1.0, 2.0)
    assert fm.auctions.named("fmore[payment=second, winners=2]").winners == 2


@pytest.mark.parametrize("name", ALL)
def test_an_audit_refutes_nothing_of_the_contract(name):
    """Truth is searched for above, and `flmarket audit` refutes the claims of csra and fmore."""
    asked = ["contract", "deterministic", "draws", "batch", "budget_feasible"]
    report = check_auction(name, markets=5, only=[*asked, "individually_rational"])
    assert report.passed
    rational = report.verdict("individually_rational", "any").outcome
    assert rational == ("fails" if name in ("vcg-k", *EVERYBODY_SELLS) else "holds")
