"""seq-price: for every valuation no lie pays, nobody is underpaid, no budget is overspent."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.auctions.learned import weight_files, weight_names
from flmarket_sim.auctions.learned.favourite import (
    LEAST,
    PARTS,
    Reading,
    favourite,
    favourite_on_curve,
    favourite_pair,
    fine_grid,
    payments_between,
)
from flmarket_sim.auctions.learned.price_network import PriceNetwork, Standing
from flmarket_sim.errors import InputError
from flmarket_sim.owners.family_table import family_codes, family_of
from flmarket_sim.owners.stated_valuation import TABLE, StatedValuations
from flmarket_sim.testing.trial_valuations import TRIAL_VALUATIONS
from tests.support.paths import ROOT

SIZES = ("certified", "reported")
SHIPPED = [
    (name, size)
    for size in SIZES
    for name in weight_names.shipped("seq-price", "reported" if size == "reported" else "")
    if not name.endswith(".reported")
]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def wild(tmp_path_factory):
    """Mechanisms with random weights: menus that no training would make."""

    def make(size, seed=0):
        torch.manual_seed(seed)
        network = PriceNetwork(9, 16, 2.2, size, 50.0)
        for parameter in network.layers[-1].parameters():
            torch.nn.init.normal_(parameter, std=1.0)
        path = tmp_path_factory.mktemp("wild") / f"{size}{seed}.safetensors"
        weight_files.save(
            path, weight_files.Learned(network, "seq-price", True, True, network.shape_facts)
        )
        return fm.auctions.create("seq-price", weights=str(path), size=size)

    return make


def markets(count, n, seed=0, families=5, others=0.0):
    """A share `others` of the owners has valuations of no family of the paper."""
    rng = np.random.default_rng(seed)
    shape = (count, n)
    family = rng.integers(0, families, shape)
    if others:
        odd = family_codes(list(TRIAL_VALUATIONS))[rng.integers(len(TRIAL_VALUATIONS), size=shape)]
        family = np.where(rng.random(shape) < others, odd, family)
    truth = fm.Profiles(
        family,
        rng.uniform(0.3, 2.0, shape),
        rng.uniform(0.2, 2.5, shape),
        np.ceil(rng.lognormal(3.0, 1.5, shape)),
    )
    return truth, rng.uniform(0.05, 2.5, count) * truth.total_value()


def utilities(auction, truth, bids, budget):
    outcome = auction.decide(bids, budget, np.random.default_rng(0))
    size = bids.data_size if outcome.data_size is None else outcome.data_size
    return truth.utility(outcome.privacy_loss, outcome.payment, size)


def misreports(truth, bids, i, size_too, rng):
    """Reports of owner i instead of the truth in every market, of one kind drawn at random."""
    count, levels = truth.shape[0], bids.levels
    eb, size = truth.privacy_budget[:, i].copy(), truth.data_size[:, i].copy()
    kind = rng.integers(6)
    stated = StatedValuations.tables((count,))
    if kind in (1, 3, 5):
        eb = eb * rng.uniform(0.02, 1.0, count)
    if size_too and rng.random() < 0.7:
        size = np.maximum(1.0, np.floor(size * rng.uniform(0.02, 1.0, count)))
    values = np.zeros(
        (count, levels)
    )  # kind 4: "anything up to eb for nothing", which buys the last point of the menu
    if kind in (0, 1):  # another family or rate
        other = fm.Profiles(
            rng.integers(0, 5, (count, 1)),
            truth.rate[:, [i]] * np.exp(rng.normal(0, 0.8, (count, 1))),
            eb[:, None],
            size[:, None],
        )
        values, stated = (
            other.bids(levels).values[:, 0],
            other.bids(levels).stated.at((slice(None), 0)),
        )
    elif kind in (2, 3):  # any table
        values = np.sort(bids.values[:, i, -1:] * rng.exponential(0.6, (count, levels)), axis=1)
    elif kind == 5:  # the truth about a smaller offer
        values = truth.types.at((slice(None), i)).table(levels, eb, size)
        stated = StatedValuations.of(truth.types.at((slice(None), i)), size)
    told = [bids.values.copy(), bids.privacy_budget.copy(), bids.data_size.copy()]
    told[0][:, i], told[1][:, i], told[2][:, i] = values, eb, size
    return fm.BidBatch(*told, bids.stated.replaced((slice(None), i), stated))


def largest_gain(auction, count=400, n=5, tries=40, seed=0):
    """As a share of the budget, over owners, markets and misreports."""
    truth, budget = markets(count, n, seed, others=0.5)
    bids = truth.bids(8)
    honest = utilities(auction, truth, bids, budget)
    rng = np.random.default_rng(seed + 1)
    found = 0.0
    for i in range(n):
        for _ in range(tries):
            told = misreports(truth, bids, i, auction.size == "reported", rng)
            gain = utilities(auction, truth, told, budget)[:, i] - honest[:, i]
            found = max(found, (gain / budget).max())
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_lie_pays_whatever_the_menus(wild, size, seed):
    assert largest_gain(wild(size, seed), seed=seed) <= 1e-12


@pytest.mark.parametrize(("weights", "size"), SHIPPED)
def test_no_lie_pays_with_the_shipped_menus(weights, size):
    assert (
        largest_gain(
            fm.auctions.create("seq-price", weights=weights, size=size), count=100, tries=12
        )
        <= 1e-12
    )


def test_the_search_for_lies_can_find_one():
    """The same lies against a mechanism that can be lied to."""
    auction = fm.auctions.create("all-in-critical")
    auction.size = "certified"
    assert largest_gain(auction, count=50, tries=20) > 1e-3


@pytest.mark.parametrize("size", SIZES)
def test_no_lie_pays_to_an_owner_whose_valuation_is_a_table(wild, size):
    """Between two levels it costs her what the upper one costs."""
    rng = np.random.default_rng(3)
    auction = wild(size, 2)
    truth, budget = markets(300, 4, 3)
    bids = truth.bids(6)
    tables = np.sort(rng.exponential(bids.values[:, :, -1:] * 0.7, bids.values.shape), axis=2)
    bids = fm.BidBatch(
        tables, bids.privacy_budget, bids.data_size, StatedValuations.tables(truth.shape)
    )

    def utility(told, i):
        outcome = auction.decide(told, budget, rng)
        loss = outcome.privacy_loss[:, i]
        level = np.ceil(loss / truth.privacy_budget[:, i] * 6 - 1e-9).astype(int)
        cost = np.where(loss > 0, tables[np.arange(300), i, np.clip(level - 1, 0, 5)], 0.0)
        return outcome.payment[:, i] - cost

    for i in range(4):
        honest = utility(bids, i)
        for _ in range(20):
            told = misreports(truth, bids, i, size == "reported", rng)
            assert ((utility(told, i) - honest) / budget).max() <= 1e-12


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 21, 34, 60])
def test_budgets_hold_and_nobody_is_paid_less_than_she_reports(wild, size, n):
    for auction in (wild(size, n), fm.auctions.create("seq-price", size=size)):
        truth, budget = markets(60, n, n)
        budget[:3] = 0.0, 1e-9, 1e12
        bids = truth.bids(8)
        outcome = auction.decide(bids, budget, np.random.default_rng(0))
        sold = bids.data_size if outcome.data_size is None else outcome.data_size
        assert (outcome.payment.sum(axis=1) <= budget * (1 + 1e-12)).all()
        assert (outcome.privacy_loss <= bids.privacy_budget).all() and (
            sold <= bids.data_size
        ).all()
        assert (
            outcome.payment
            >= truth.value(outcome.privacy_loss, sold) * (1 - 1e-12) - 1e-12 * budget[:, None]
        ).all()
        assert (outcome.payment[outcome.privacy_loss == 0] == 0).all()
        if size == "certified" and n > 1:
            assert outcome.privacy_loss[2].min() > 0  # so much money buys from everybody


def one_by_one(network, sizes, eb, family, rate, budget):
    """One market, plain numbers: certified sizes, every point of the menu tried in turn."""
    knots = [2.2 * (k + 1) / 9 for k in range(9)]
    left, result = budget, {}
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    standing = Standing(
        network, torch.tensor([[sizes[i] for i in order]]).float(), torch.tensor([budget]).float()
    )
    for t, i in enumerate(order):
        prices = [p * budget for p in standing.menu(t)[0].tolist()]
        scale = rate[i] * sizes[i]
        best = (0.0, 0.0, 0.0)
        before = (0.0, 0.0)
        for knot, price in zip(knots, prices, strict=True):
            a, pa = before
            for part in range(1, PARTS + 1):
                e = a + (knot - a) * part / PARTS
                paid = pa + (price - pa) * part / PARTS
                if LEAST * knots[-1] * (1 - 1e-9) <= e <= eb[i]:
                    worth = float(family_of(family[i]).value(np.array([e]))[0])
                    best = max(best, (paid - scale * worth, e, paid))
            before = (knot, price)
        _, e, paid = best
        left -= paid
        standing.settle(
            t,
            torch.tensor([e], dtype=torch.float32),
            torch.tensor([paid / budget], dtype=torch.float32),
        )
        result[i] = (e, paid)
    assert left >= -1e-9 * budget
    return [result[i] for i in range(len(sizes))]


@pytest.mark.parametrize("others", [0.0, 0.5])
def test_the_few_points_that_are_tried_hold_the_best_of_the_grid(others):
    """Every point of the grid that is for sale, tried for every owner."""
    truth, budget = markets(400, 5, 31, others=others)
    rng = np.random.default_rng(2)
    knots = np.arange(1, 10) * (2.2 / 9)
    grid = fine_grid(knots)
    for_sale = grid >= LEAST * grid[-1] * (1 - 1e-9)
    reading = Reading.of(truth.bids(8))
    for i in range(5):
        price = np.cumsum(rng.exponential(1.0, (400, 9)) ** 2, axis=1)
        price *= (rng.uniform(0.05, 1.0, 400) * budget / price[:, -1])[:, None]
        claim = reading.of_owner(np.arange(400), np.full(400, i))
        loss, paid = favourite_on_curve(claim, knots, price)
        all_losses, all_paid = favourite(
            claim, grid[for_sale], payments_between(price)[:, for_sale]
        )
        owner = truth.types.at((slice(None), i))
        found, best = paid - owner.value(loss), all_paid - owner.value(all_losses)
        assert found == pytest.approx(best, abs=1e-12 * budget.max())
        assert (np.isclose(loss, all_losses)).mean() > 0.99  # but for ties


def test_what_is_sold_is_never_next_to_nothing():
    """A size-weighted average of tiny losses would have a huge error."""
    truth, budget = markets(2000, 10, 41, families=4)
    for kappa in (8.0, 4880.0):
        auction = fm.auctions.auction_in(fm.auctions.create("seq-price"), error_of_kappa(kappa))
        loss = auction.decide(truth.bids(8), budget, None).privacy_loss
        assert loss[loss > 0].min() >= LEAST * 2.0 * (1 - 1e-9)
        weights = fm.aggregation.create("convl-aggr").weights(loss, truth.data_size)
        error = fm.aggregation.error_bound(weights, loss, truth.data_size)
        assert error[np.isfinite(error)].max() <= 8.0 / (LEAST * 2.0) ** 2 + 4.0


def test_small_owners_come_first_where_noise_is_large(wild):
    auction = wild("certified", 9)
    truth, budget = markets(20, 6, 43)
    for kappa, sign in ((8.0, -1), (4880.0, 1)):
        asked = auction.in_market(error_of_kappa(kappa)).sequence(truth.bids(8), budget)
        sizes = np.take_along_axis(truth.data_size, asked.order, 1)
        assert (np.diff(sizes, axis=1) * sign >= 0).all()
    assert auction.kappa == 8.0  # the auction itself stays as it is


def test_no_lie_pays_in_a_noisy_market(wild):
    auction = wild("certified", 3).in_market(error_of_kappa(4880.0))
    assert largest_gain(auction, count=100, tries=12) <= 1e-12


def test_twice_the_rate_and_twice_the_money_is_the_same_market(wild):
    plain = wild("certified", 10)
    truth, budget = markets(50, 5, 44)
    double = fm.Profiles(truth.family, 2 * truth.rate, truth.privacy_budget, truth.data_size)
    told = copy(plain)
    told.prior_rate = 2.0
    once = plain.decide(truth.bids(8), budget, None)
    twice = told.decide(double.bids(8), 2 * budget, None)
    assert twice.privacy_loss == pytest.approx(once.privacy_loss)
    assert twice.payment == pytest.approx(2 * once.payment)
    with pytest.raises(InputError, match="prior_rate"):
        fm.auctions.create("seq-price", prior_rate=0.0)


def test_weights_that_read_secrets_are_no_mechanism(tmp_path):
    network = PriceNetwork(9, 8, 2.0, secrets=6)
    path = tmp_path / "knows.safetensors"
    weight_files.save(
        path, weight_files.Learned(network, "seq-price", True, True, network.shape_facts)
    )
    with pytest.raises(InputError, match="secret"):
        fm.auctions.create("seq-price", weights=str(path))


@pytest.mark.parametrize("n", [1, 4, 9])
def test_all_at_once_is_what_one_by_one_is(wild, n):
    auction = wild("certified", 5)
    truth, budget = markets(25, n, 11, families=4, others=0.5)
    outcome = auction.decide(truth.bids(8), budget, np.random.default_rng(0))
    for k in range(25):
        rows = [
            column[k].tolist()
            for column in (truth.data_size, truth.privacy_budget, truth.family, truth.rate)
        ]
        expected = one_by_one(auction.network, *rows, float(budget[k]))
        found = list(zip(outcome.privacy_loss[k], outcome.payment[k], strict=True))
        # Menus are computed in single precision, one market here and 25 at once there.
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-5, abs=1e-6 * budget[k])


@pytest.mark.parametrize("size", SIZES)
def test_a_menu_does_not_move_with_the_report_of_whom_it_is_for(wild, size):
    auction = wild(size, 6)
    truth, budget = markets(40, 6, 12)
    bids = truth.bids(8)
    before = auction.sequence(bids, budget)
    rng = np.random.default_rng(0)
    for i in range(6):
        told = misreports(truth, bids, i, size == "reported", rng)
        after = auction.sequence(told, budget)
        assert (after.order == before.order).all()
        place = np.argmax(before.order == i, axis=1)
        for k in range(40):
            mine = slice(0, place[k] + 1)  # hers and everybody's before her
            assert (after.menu[k, mine] == before.menu[k, mine]).all()


def test_the_sequence_tells_the_whole_round(wild):
    truth, budget = markets(30, 7, 13)
    bids = truth.bids(8)
    auction = wild("certified", 7)
    sequence, outcome = (
        auction.sequence(bids, budget),
        auction.decide(bids, budget, np.random.default_rng(0)),
    )
    assert (
        np.diff(np.take_along_axis(truth.data_size, sequence.order, 1), axis=1) <= 0
    ).all()  # from the largest on
    assert (np.diff(sequence.menu, axis=2) >= 0).all() and sequence.menu.shape == (30, 7, 9)
    assert (
        np.take_along_axis(outcome.privacy_loss, sequence.order, 1) == sequence.chosen_loss
    ).all()
    spent = np.cumsum(sequence.chosen_payment, axis=1) - sequence.chosen_payment
    assert (
        sequence.menu[:, :, -1] <= (budget[:, None] - spent) * (1 + 1e-12)
    ).all()  # no option costs more than what is left
    for t in range(7):
        for k in range(30):
            curve = [0.0, *sequence.privacy_loss], [0.0, *sequence.menu[k, t]]
            price = np.interp(sequence.chosen_loss[k, t], *curve)
            assert price == pytest.approx(sequence.chosen_payment[k, t])
    sold = sequence.chosen_loss > 0
    assert sold.any() and (sequence.chosen_loss[sold] >= LEAST * 2.2 * (1 - 1e-9)).all()
    step = sequence.privacy_loss[0] / PARTS
    assert np.round(sequence.chosen_loss / step) * step == pytest.approx(sequence.chosen_loss)


def test_offers_can_be_answered_one_at_a_time(wild):
    truth, budget = markets(1, 5, 14)
    auction = wild("certified", 8)
    asking = auction.ask(truth.data_size, budget)
    asked = []
    for offer in asking:
        asked.append(int(offer.owner[0]))
        assert (offer.payment <= offer.money[:, None]).all()
        asking.settle(
            offer.privacy_loss[:1], offer.payment[:, 0]
        )  # whoever it is takes the smallest loss
    assert asked == asking.order[0].tolist()


def test_a_report_is_read_as_it_states_unless_its_table_says_otherwise():
    truth, _ = markets(200, 5, 15, others=0.5)
    for levels in (1, 2, 8):
        bids = truth.bids(levels)
        assert (Reading.of(bids).stated.family == truth.family).all()
    bent = bids.values.copy()
    bent[:, 2:, 2] *= 1 + 1e-6
    bent = np.maximum.accumulate(bent, axis=2)
    read = Reading.of(replace(bids, values=bent)).stated.family
    assert (read[:, :2] == truth.family[:, :2]).all() and (read[:, 2:] == TABLE).any()
    changed = (bent != bids.values).any(axis=2)
    assert (read[changed] == TABLE).all()
    alone = fm.BidBatch(bids.values, bids.privacy_budget, bids.data_size)
    assert (Reading.of(alone).stated.family == TABLE).all()


def best_pair(value, size, eb, grid, unit, money):
    """Every loss of the menu and every number of records, in turn."""
    best = (0.0, 0.0, 0.0, size)
    for e, price in zip(grid, unit, strict=True):
        for records in range(1, int(size) + 1):
            if e <= eb and records * price <= money:
                utility = records * price - value(e, records)
                best = max(best, (utility, e, records * price, records))
    return best


@pytest.mark.parametrize("families", [None, ["power_valuation:PowerOfData"]])
def test_the_favourite_pair_is_the_best_of_all_pairs(families, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    truth, budget = markets(60, 1, 3, others=0.5)
    if families:
        truth = fm.Profiles(np.full((60, 1), families[0]), *truth.types[1:])
    rng = np.random.default_rng(1)
    grid = np.arange(1, 8) * 0.3
    unit = np.sort(rng.exponential(2.0 * truth.rate, (60, 7)), axis=1)
    claim = Reading.of(truth.bids(8)).of_owner(np.arange(60), np.zeros(60, np.int64))
    loss, payment, records = favourite_pair(claim, grid, unit, budget)
    for k in range(60):
        owner = truth.types.at((k, 0))
        expected = best_pair(
            lambda e, d, owner=owner: float(owner.value(np.array(e), np.array(float(d)))),
            truth.data_size[k, 0], truth.privacy_budget[k, 0], grid, unit[k], budget[k],
        )  # fmt: skip
        utility = payment[k] - float(owner.value(loss[k], records[k]))
        assert utility == pytest.approx(expected[0], abs=1e-9 * budget[k])
        assert payment[k] <= budget[k]


def test_an_owner_between_the_families_gains_nothing_by_a_smaller_budget():
    """The flaw of a table that is rounded up: it cost her up to 3 % to tell the truth."""
    truth, budget = markets(300, 4, 21)
    truth = fm.Profiles(np.full(truth.shape, TRIAL_VALUATIONS[0]), *truth.types[1:])
    auction = fm.auctions.create("seq-price")
    bids = truth.bids(8)
    honest = utilities(auction, truth, bids, budget)
    for share in np.linspace(0.3, 0.99, 24):
        offered = share * truth.privacy_budget
        smaller = fm.Profiles(truth.family, truth.rate, offered, truth.data_size).bids(8)
        for i in range(4):
            told = fm.BidBatch(
                np.where(np.arange(4)[:, None] == i, smaller.values, bids.values),
                np.where(np.arange(4) == i, smaller.privacy_budget, bids.privacy_budget),
                bids.data_size,
                bids.stated,
            )
            gain = utilities(auction, truth, told, budget)[:, i] - honest[:, i]
            assert (gain / budget).max() <= 1e-12


@pytest.mark.parametrize("size", SIZES)
def test_the_same_reports_give_the_same_outcome_whatever_is_decided_beside_them(wild, size):
    auction = wild(size, 9)
    truth, budget = markets(2100, 3, 16)
    bids = truth.bids(8)
    rng = np.random.default_rng(5)
    state = rng.bit_generator.state
    whole = auction.decide(bids, budget, rng)
    assert rng.bit_generator.state == state  # nothing is drawn
    part = auction.decide(bids.take(slice(2040, 2060)), budget[2040:2060], rng)
    # Single precision: sums in another batch may end in other last digits.
    assert part.payment == pytest.approx(whole.payment[2040:2060], rel=1e-5)
    assert part.privacy_loss == pytest.approx(whole.privacy_loss[2040:2060], rel=1e-5)


def test_weights_that_are_not_there_or_for_the_other_kind_of_sizes_are_refused(wild, tmp_path):
    with pytest.raises(InputError, match="no weights"):
        fm.auctions.create("seq-price", weights="nowhere")
    network = PriceNetwork(4, 8, 2.0, "reported", 10.0)
    path = tmp_path / "w.safetensors"
    weight_files.save(
        path, weight_files.Learned(network, "seq-price", True, True, network.shape_facts)
    )
    with pytest.raises(InputError, match="reported"):
        fm.auctions.create("seq-price", weights=str(path), size="certified")
