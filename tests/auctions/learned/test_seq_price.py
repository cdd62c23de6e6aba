"""seq-price: for every valuation no lie pays, nobody is underpaid, no budget is overspent."""

import math

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.favourite import TABLE, Reading, curve_at
from flmarket_sim.auctions.learned.price_network import PriceNetwork, Standing
from flmarket_sim.errors import InputError

SIZES = ("certified", "reported")
SHIPPED = [(name, size) for size in SIZES for name in ("paper-iid", "paper-noniid", "general")]


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


def markets(count, n, seed=0, families=5):
    rng = np.random.default_rng(seed)
    shape = (count, n)
    truth = fm.Profiles(
        rng.integers(0, families, shape),
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
    if kind in (1, 3, 5):
        eb = eb * rng.uniform(0.02, 1.0, count)
    if size_too and rng.random() < 0.7:
        size = np.maximum(1.0, np.floor(size * rng.uniform(0.02, 1.0, count)))
    values = np.zeros(
        (count, levels)
    )  # kinds 4, 5: "anything up to eb for nothing", which buys any point of the curve
    if kind in (0, 1):  # another family or rate
        other = fm.Profiles(
            rng.integers(0, 5, (count, 1)),
            truth.rate[:, [i]] * np.exp(rng.normal(0, 0.8, (count, 1))),
            eb[:, None],
            size[:, None],
        )
        values = other.bids(levels).values[:, 0]
    elif kind in (2, 3):  # any table
        values = np.sort(bids.values[:, i, -1:] * rng.exponential(0.6, (count, levels)), axis=1)
    told = [bids.values.copy(), bids.privacy_budget.copy(), bids.data_size.copy()]
    told[0][:, i], told[1][:, i], told[2][:, i] = values, eb, size
    return fm.BidBatch(*told)


def largest_gain(auction, count=400, n=5, tries=40, seed=0):
    """As a share of the budget, over owners, markets and misreports."""
    truth, budget = markets(count, n, seed)
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
    bids = fm.BidBatch(tables, bids.privacy_budget, bids.data_size)
    assert (Reading.of(bids).family == TABLE).all()

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
    """One market, plain numbers: certified sizes, owners of the four families."""
    knots = [2.2 * (k + 1) / 9 for k in range(9)]
    left, result = budget, {}
    order = sorted(range(len(sizes)), key=lambda i: (-sizes[i], i))
    standing = Standing(
        network, torch.tensor([[sizes[i] for i in order]]).double(), torch.tensor([budget]).double()
    )
    for t, i in enumerate(order):
        prices = [p * budget for p in standing.menu(t)[0].tolist()]
        scale = rate[i] * sizes[i]
        cost = [
            lambda e, s=scale: 2 * s * e,
            lambda e, s=scale: s * e * e,
            lambda e, s=scale: 2 * s * math.sqrt(e),
            lambda e, s=scale: s * math.expm1(e),
        ][family[i]]
        best = (0.0, 0.0, 0.0)
        before = (0.0, 0.0)
        for knot, price in zip(knots, prices, strict=True):
            (a, pa), slope = before, (price - before[1]) / (knot - before[0])
            points = [knot, eb[i]]
            if family[i] == 1:
                points.append(slope / (2 * scale))
            if family[i] == 3 and slope > 0:
                points.append(math.log(slope / scale))
            for e in points:
                if a <= e <= min(knot, eb[i]):
                    paid = pa + slope * (e - a)
                    best = max(best, (paid - cost(e), e, paid))
            before = (knot, price)
        _, e, paid = best
        left -= paid
        standing.settle(
            t,
            torch.tensor([e], dtype=torch.float64),
            torch.tensor([paid / budget], dtype=torch.float64),
        )
        result[i] = (e, paid)
    assert left >= -1e-9 * budget
    return [result[i] for i in range(len(sizes))]


@pytest.mark.parametrize("n", [1, 4, 9])
def test_all_at_once_is_what_one_by_one_is(wild, n):
    auction = wild("certified", 5)
    truth, budget = markets(25, n, 11, families=4)
    outcome = auction.decide(truth.bids(8), budget, np.random.default_rng(0))
    for k in range(25):
        rows = [
            column[k].tolist()
            for column in (truth.data_size, truth.privacy_budget, truth.family, truth.rate)
        ]
        expected = one_by_one(auction.network, *rows, float(budget[k]))
        found = list(zip(outcome.privacy_loss[k], outcome.payment[k], strict=True))
        assert np.array(found) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9 * budget[k])


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
            assert after.menu[k, mine] == pytest.approx(before.menu[k, mine], rel=1e-12, abs=1e-12)


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
        price = curve_at(
            sequence.privacy_loss, sequence.menu[:, t], sequence.chosen_loss[:, t : t + 1]
        )[:, 0]
        assert np.where(sequence.chosen_loss[:, t] > 0, price, 0.0) == pytest.approx(
            sequence.chosen_payment[:, t]
        )


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


def test_tables_of_the_families_are_recognised_and_others_are_not():
    truth, _ = markets(200, 5, 15)
    for levels in (2, 3, 8):
        bids = truth.bids(levels)
        assert (Reading.of(bids).family == np.where(truth.family == 4, TABLE, truth.family)).all()
    bent = bids.values.copy()
    smooth = truth.family < 4
    bent[smooth, 2] *= 1 + 1e-6
    assert (
        Reading.of(fm.BidBatch(bent, bids.privacy_budget, bids.data_size)).family[smooth] == TABLE
    ).all()
    assert (Reading.of(truth.bids(1)).family == TABLE).all()


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
    assert part.payment == pytest.approx(whole.payment[2040:2060], rel=1e-12)
    assert part.privacy_loss == pytest.approx(whole.privacy_loss[2040:2060], rel=1e-12)


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
