"""A price for a record that nobody can move: not by a report, not by a name, not together."""

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim import auctions
from flmarket_sim.aggregation.market_error import error_of_kappa
from flmarket_sim.auctions.auction import SellsInTurn, auction_in, check_outcome, sales_and_rest
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.favourite import PARTS
from flmarket_sim.auctions.learned.price_table import KAPPA, MONEY, PriceTable
from flmarket_sim.errors import InputError
from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks, scores
from flmarket_sim.testing import check_auction
from tests.support.profiles import random_profiles

FAMILIES = ("linear", "quadratic", "sqrt", "exponential")
WEIGHTS = ("paper-part", "paper-all", "random")


def create(weights):
    """The auction with shipped weights, or with a table that nobody trained."""
    if weights != "random":
        return auctions.create("record-price", weights=weights)
    auction = auctions.create("record-price", weights="paper-part")
    auction.table = PriceTable(12, 2.0, 2.3, "part").double()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        for parameter in auction.table.parameters():
            parameter.normal_(0.0, 2.0)
    return auction


def markets(count, n, seed=0, families=FAMILIES):
    rng = np.random.default_rng(seed)
    truth = random_profiles(rng, count, n, families)
    return truth, rng.uniform(0.05, 3.0, count) * truth.total_value()


def decide(auction, bids, money):
    outcome = auction.decide(bids, money, np.random.default_rng(0))
    return check_outcome(auction.name, outcome, bids, money)


def utilities(truth, bids, outcome):
    size = bids.data_size if outcome.data_size is None else outcome.data_size
    return truth.utility(outcome.privacy_loss, outcome.payment, size)


def one_record(auction, money, total):
    """The part for sale, and every (loss, price of a record that is sold), one at a time."""
    part, prices = auction.prices(np.array([total]), np.array([money]))
    options, before_loss, before_price = [], 0.0, 0.0
    for knot, price in zip(auction.knots.tolist(), prices[0].tolist(), strict=True):
        for step in range(1, PARTS + 1):
            way = step / PARTS
            loss = before_loss + way * (knot - before_loss)
            if loss >= auction.knots[-1] / 16 - 1e-12:
                options.append((loss, before_price + way * (price - before_price)))
        before_loss, before_price = knot, price
    return float(part[0]), options


@pytest.mark.parametrize("weights", WEIGHTS)
def test_each_owner_gets_the_best_of_every_option_tried_in_turn(weights):
    auction = create(weights)
    truth, money = markets(20, 4)
    bids = truth.bids()
    outcome = decide(auction, bids, money)
    size = bids.data_size if outcome.data_size is None else outcome.data_size
    for k in range(20):
        part, options = one_record(auction, money[k], truth.data_size[k].sum())
        for i in range(4):
            records = np.floor(part * truth.data_size[k, i] + 1e-9)
            best = 0.0
            if records >= 1:
                owner = truth.types.at((k, i))
                best = max(
                    [0.0]
                    + [
                        records * price - float(owner.value(np.float64(loss), np.float64(records)))
                        for loss, price in options
                        if loss <= truth.privacy_budget[k, i]
                    ]
                )
            utility = utilities(truth, bids, outcome)[k, i]
            assert utility == pytest.approx(best, abs=1e-9 * money[k])
            assert size[k, i] in (records, truth.data_size[k, i])


def gain_by_names(auction, names, seed, tries=6):
    """(splits,) what the first owner of a market gains by names with random parts of her records,
    over the budget. Names that nothing but their own choice affects choose best by the truth."""
    rng = np.random.default_rng(seed)
    truth, money = markets(150, 5, seed)
    whole = utilities(truth, truth.bids(), decide(auction, truth.bids(), money))[:, 0]
    gains = []
    for _ in range(tries):
        inner = rng.uniform(size=(150, names))
        parts = np.floor(truth.data_size[:, :1] * inner / inner.sum(1, keepdims=True))
        parts[:, 0] += truth.data_size[:, 0] - parts.sum(1)
        possible = np.flatnonzero((parts >= 1).all(axis=1))
        several = with_names(truth.take(possible), parts[possible])
        outcome = decide(auction, several.bids(), money[possible])
        joint = utilities(several, several.bids(), outcome)[:, :names].sum(axis=1)
        gains.append((joint - whole[possible]) / money[possible])
    return np.concatenate(gains)


def with_names(truth, parts):
    """The same markets with the first owner as several, who have parts (K, names) of her
    records."""

    def widened(column, first=None):
        same = np.repeat(column[:, :1], parts.shape[1], axis=1) if first is None else first
        return np.concatenate([same, column[:, 1:]], axis=1)

    return fm.Profiles(
        widened(truth.family),
        widened(truth.rate),
        widened(truth.privacy_budget),
        widened(truth.data_size, parts),
    )


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("names", [2, 3, 7])
def test_no_split_into_names_pays(weights, names):
    gain = gain_by_names(create(weights), names, seed=names)
    assert gain.max() <= 1e-12
    if weights == "paper-all":  # and nothing is lost either
        assert gain == pytest.approx(np.zeros(len(gain)), abs=1e-12)


def test_the_same_splits_pay_where_menus_depend_on_names():
    assert gain_by_names(auctions.create("seq-price"), 2, seed=2).max() > 0.01


@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_report_of_anybody_moves_what_others_get(weights):
    auction, rng = create(weights), np.random.default_rng(7)
    truth, money = markets(100, 6, seed=7)
    other = fm.Profiles(
        truth.family[::-1],
        truth.rate * rng.uniform(0.1, 5.0, truth.shape),
        rng.uniform(0.2, 2.0, truth.shape),
        truth.data_size,
    )
    kept = rng.random(truth.shape) < 0.5
    mixed = fm.Profiles(
        np.where(kept, truth.family, other.family),
        np.where(kept, truth.rate, other.rate),
        np.where(kept, truth.privacy_budget, other.privacy_budget),
        truth.data_size,
    )
    before, after = (decide(auction, each.bids(), money) for each in (truth, mixed))
    assert (before.privacy_loss == after.privacy_loss)[kept].all()
    assert (before.payment == after.payment)[kept].all()
    assert (before.privacy_loss != after.privacy_loss)[~kept].any()


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_budget_is_enough_even_if_everybody_takes_the_dearest_option(weights):
    auction = create(weights)
    truth, money = markets(300, 8, seed=2)
    offers = list(auction.ask(truth.data_size, money))
    dearest = sum(offer.payment.max(axis=1) for offer in offers)
    assert (dearest <= money * (1 + 1e-12)).all()
    assert all((np.diff(offer.payment, axis=1) >= 0).all() for offer in offers)


def test_next_to_nothing_is_not_for_sale():
    truth, money = markets(500, 8, seed=4)
    outcome = decide(create("paper-all"), truth.bids(), 0.05 * money)
    sold = outcome.privacy_loss[outcome.privacy_loss > 0]
    assert sold.size and sold.min() >= 2.0 / 16


def test_an_owner_without_a_whole_record_for_sale_sells_nothing():
    auction = create("random")
    truth = fm.Profiles([["linear", "linear"]], [[0.5, 0.5]], [[2.0, 2.0]], [[1.0, 5000.0]])
    part, _ = auction.prices(np.array([5001.0]), np.array([1e4]))
    outcome = decide(auction, truth.bids(), np.array([1e4]))
    assert part[0] < 1 and outcome.privacy_loss[0, 0] == 0 and outcome.payment[0, 0] == 0
    assert outcome.data_size[0, 1] == np.floor(5000 * part[0])


def test_records_that_are_not_bought_count_as_those_of_an_owner_who_sells_nothing():
    truth, money = markets(5, 4, seed=6)
    outcome = decide(create("paper-part"), truth.bids(), money)
    loss, size = sales_and_rest(outcome, truth.data_size)
    assert loss.shape == size.shape == (5, 5) and (loss[:, -1] == 0).all()
    assert size.sum(axis=1) == pytest.approx(truth.data_size.sum(axis=1))
    whole = decide(create("paper-all"), truth.bids(), money)
    assert sales_and_rest(whole, truth.data_size)[1] is truth.data_size


def test_an_evaluation_counts_what_was_not_bought():
    scenario = fm.load_scenario("paper/iid")
    tasks = evaluation_tasks(["record-price"], scenario, [0.5], 20, "opt-aggr", 0, seed=3)
    score = scores(tasks, [evaluate(task) for task in tasks])[0]
    outcome = decide(create("paper-part"), tasks[1].truth.bids(), tasks[1].budget)
    loss, size = sales_and_rest(outcome, tasks[1].truth.data_size)
    rule = fm.aggregation.create("opt-aggr")
    counted = fm.aggregation.error_bound(rule.weights(loss, size), loss, size)
    assert score.error_bound == pytest.approx(counted.mean())
    blind = outcome.privacy_loss, tasks[1].truth.data_size
    assert fm.aggregation.error_bound(rule.weights(*blind), *blind).mean() < 0.9 * counted.mean()


@pytest.mark.parametrize("weights", ["paper-part", "paper-all"])
def test_it_keeps_all_that_it_promises_to_everybody(weights):
    report = check_auction(create(weights), markets=6)
    for promise in ("truthful", "individually_rational", "budget_feasible"):
        assert report.verdict(promise, "any").held and report.verdict(promise, "single-minded").held


def test_the_noise_of_a_market_changes_what_is_for_sale():
    auction = create("paper-part")
    noisy = auction_in(auction, error_of_kappa(4880.0))
    total, money = np.array([1000.0]), np.array([1000.0])
    assert noisy.prices(total, money)[0] < auction.prices(total, money)[0]
    assert auction.error.kappa == 8.0  # this one stays as it is


def test_prices_follow_money_and_stay_rising_outside_of_the_table():
    auction = create("paper-all")
    for kappa in (1e-3, 8.0, 700.0, 1e7):
        set_for = auction_in(auction, error_of_kappa(kappa))
        for money in (0.0, 1e-9, 1.0, 1e9):
            _, price = set_for.prices(np.array([50.0]), np.array([money]))
            assert (np.diff(price[0]) >= 0).all() and price[0, -1] <= money / 50 * (1 + 1e-12)


def test_owners_who_answer_for_themselves_get_what_decide_gives():
    auction = create("paper-part")
    assert isinstance(auction, SellsInTurn)
    truth, money = markets(30, 5, seed=8)
    outcome, reading, rows = (
        decide(auction, truth.bids(), money),
        auction.reading(truth.bids()),
        np.arange(30),
    )
    asking = auction.ask(truth.data_size, money)
    for place, offer in enumerate(asking):
        loss, payment, size = auction.choice(reading, rows, offer)
        asking.settle(loss, payment)
        assert (loss == outcome.privacy_loss[:, place]).all()
        assert (payment == outcome.payment[:, place]).all()
        assert (size == outcome.data_size[:, place]).all()


def test_it_runs_in_a_market(tmp_path):
    scenario = fm.load_scenario("quickstart", ["auction.name=record-price", "rounds=2"])
    run = fm.run(scenario, tmp_path / "run")
    offers = fm.sql(run.path, "SELECT count(*) AS n FROM offer").to_pylist()[0]["n"]
    paid = fm.sql(run.path, "SELECT count(*) AS n FROM payment").to_pylist()[0]["n"]
    assert offers > 0 and paid > 0


def test_a_table_is_read_between_its_points():
    table = PriceTable(3, 2.0, 1.0, "part")
    with torch.no_grad():
        table.pieces.normal_(0.0, 1.0, generator=torch.Generator().manual_seed(0))
        table.part.normal_(0.0, 1.0, generator=torch.Generator().manual_seed(1))
    at = [np.exp(MONEY[4]), np.exp((MONEY[4] + MONEY[5]) / 2), np.exp(MONEY[5])]
    part, curve = table(torch.tensor(at), np.exp(KAPPA[2]))
    assert curve[1].detach().numpy() == pytest.approx(
        (curve[0] + curve[2]).detach().numpy() / 2, rel=1e-5
    )
    assert part[1].item() == pytest.approx((part[0] + part[2]).item() / 2, rel=1e-5)
    direct = torch.softmax(table.pieces[4, 2], 0)[:-1].cumsum(0)
    assert curve[0].detach().numpy() == pytest.approx(direct.detach().numpy(), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "why"),
    [({"typical_price": 0.0}, "finite and positive"), ({"sells": "half"}, "neither 'all' nor")],
)
def test_a_damaged_file_is_refused(tmp_path, change, why):
    learned = weight_files.load("paper-all", "record-price", "certified")
    learned.facts |= change
    weight_files.save(tmp_path / "damaged.safetensors", learned)
    with pytest.raises(InputError, match=why):
        auctions.create("record-price", weights=str(tmp_path / "damaged.safetensors"))
