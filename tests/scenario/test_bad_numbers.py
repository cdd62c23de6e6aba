"""Numbers that are none, or too large, are refused where they enter, by name, place and value."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.learning.synthetic import Synthetic
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.scenario_file import build_scenario, parse_scenario
from tests.support.profiles import random_profiles

NOT_FINITE = [np.nan, np.inf, -np.inf]


def broken(array, value, place=(1, 2)):
    changed = np.array(array, float)
    changed[place] = value
    return changed


@pytest.fixture
def truth():
    return random_profiles(np.random.default_rng(0), 3, 4)


@pytest.mark.parametrize("value", [*NOT_FINITE, 0.0, -1.0])
@pytest.mark.parametrize("column", ["rate", "privacy_budget", "data_size"])
def test_profiles_and_bids_name_market_owner_and_value(truth, column, value):
    with pytest.raises(InputError, match=rf"{column}\[1, 2\] \(market 1, owner 2\) is {value}"):
        replace(truth, **{column: broken(getattr(truth, column), value)})
    if column != "rate":
        with pytest.raises(InputError, match=rf"{column}\[1, 2\] \(market 1, owner 2\) is {value}"):
            replace(truth.bids(), **{column: broken(getattr(truth, column), value)})


@pytest.mark.parametrize("value", [*NOT_FINITE, -1.0])
def test_values_of_bids_are_refused(truth, value):
    bids = truth.bids(2)
    with pytest.raises(
        InputError, match=r"values\[1, 2\] \(market 1, owner 2\).*finite, at least 0"
    ):
        replace(bids, values=broken(bids.values, value, (1, 2, 0)))


@pytest.mark.parametrize("wrong", [["a"], None, [[1], [1, 2]], {}, [10**400]])
def test_what_is_no_array_of_numbers_is_refused(truth, wrong):
    for make in (
        lambda: replace(truth, rate=wrong),
        lambda: replace(truth.bids(), values=wrong),
        lambda: fm.auctions.create("all-in").decide(truth.bids(), wrong, np.random.default_rng(0)),
        lambda: fm.aggregation.create("opt-aggr").weights(wrong, truth.data_size),
        lambda: fm.aggregation.error_bound(wrong, truth.privacy_budget, truth.data_size),
    ):
        with pytest.raises(InputError):
            make()


def test_a_value_beyond_all_numbers_names_the_owner():
    rich = fm.Profiles([["linear", "exponential"]], [[1.0, 1.0]], [[1.0, 800.0]], [[10, 10]])
    with pytest.raises(InputError, match="market 0, owner 1: a privacy budget of 800"):
        rich.bids()


@pytest.mark.parametrize("levels", [0, -1, 2.5, 10**9, "8"])
def test_a_number_of_levels_is_a_number(truth, levels):
    with pytest.raises(InputError, match="levels must be"):
        truth.bids(levels)


@pytest.mark.parametrize("value", [*NOT_FINITE, -1.0])
@pytest.mark.parametrize("name", sorted({*fm.auctions.names()} - {"mfg-regretnet"}))  # needs a file
def test_every_auction_refuses_such_budgets(truth, name, value):
    bids = random_profiles(np.random.default_rng(0), 3, 10).bids()
    options = {"price": 1.0} if name == "posted-price" else {}
    budget = np.array([1.0, value, 1.0])
    with pytest.raises(InputError, match=rf"budget\[1\] \(market 1\) is {value}"):
        fm.auctions.create(name, **options).decide(bids, budget, np.random.default_rng(0))


def test_a_probe_refuses_such_budgets(truth):
    with pytest.raises(InputError, match=r"budget\[1\] \(market 1\) is nan"):
        fm.strategy.probe(fm.auctions.create("all-in"), truth, [1.0, np.nan, 1.0])


@pytest.mark.parametrize("name", fm.aggregation.names())
def test_every_rule_refuses_such_losses_sizes_and_clips(truth, name):
    rule, loss, size = fm.aggregation.create(name), truth.privacy_budget, truth.data_size
    for value in (*NOT_FINITE, -1.0, 1e200):
        with pytest.raises(InputError, match=r"privacy_loss\[1, 2\] \(market 1, owner 2\)"):
            rule.weights(broken(loss, value), size)
        with pytest.raises(InputError, match=r"data_size\[1, 2\] \(market 1, owner 2\)"):
            rule.weights(loss, broken(size, value))
    for clip in (*NOT_FINITE, 0.0, -1.0, 1e300, 1e-300, "1", None):
        with pytest.raises(InputError, match="clip must be a number"):
            rule.weights(loss, size, clip)
    with pytest.raises(InputError, match=r"weights\[1, 2\] \(market 1, owner 2\) is nan"):
        fm.aggregation.error_bound(broken(size, np.nan), loss, size)


@pytest.mark.parametrize(
    ("part", "place", "value", "message"),
    [
        ("train_x", (3, 1), np.nan, r"train_x\[3, 1\] is nan"),
        ("test_x", (0, 0), np.inf, r"test_x\[0, 0\] is inf"),
        ("train_y", (5,), 7, r"train_y\[5\] is 7; labels must lie in 0..3"),
        ("test_y", (2,), -1, r"test_y\[2\] is -1"),
    ],
)
def test_a_run_refuses_data_that_no_model_can_learn_from(tmp_path, part, place, value, message):
    scenario = build_scenario({"rounds": 1, "data": {"name": "synthetic", "records": 2000}})
    data = Synthetic(records=2000).load(Streams(0))
    getattr(data, part)[place] = value
    with pytest.raises(InputError, match=message):
        fm.run(scenario, tmp_path / "run", data=data)


@pytest.mark.parametrize(
    "text",
    [
        "rounds = 0", "rounds = -1", f"rounds = {2**64}", "seed = -1", f"seed = {10**400}",
        "seed = 0x" + "f" * 9000, "rounds = 1e3",
        "owners.rate = nan", "owners.rate = -inf", "owners.rate = 1e999",
        "owners.rate = [0.0, 1.0]",
        "owners.count = 0",
        f"owners.count = {10**18}", f"owners.rate = {10**400}", "budget.amount = -1.0",
        "budget.factor = nan", "privacy.clip = 0.0",
        "privacy.clip = 1e308", "market.bid_deadline = inf", "market.levels = 0",
        "model.learning_rate = nan", "data.records = -5",
        "data = { name = 'synthetic', records = 10000000000000000000 }",
        "market.delay = { name = 'constant', seconds = nan }",
        "owners.partition = { name = 'iid', sigma = inf }",
        f"study.options = {{ of = [1, {10**400}] }}", "study.options = { of = [1, nan] }",
        "auction.options = [[inf]]",
    ],
)  # fmt: skip
def test_numbers_of_scenarios_are_refused_by_name(text):
    with pytest.raises(InputError) as told:
        parse_scenario(text)
    assert (
        text.split("=")[0].split(".")[-1].strip() in str(told.value) and len(str(told.value)) < 1000
    )


def test_right_numbers_are_taken_without_a_warning(truth):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights = fm.aggregation.create("opt-aggr").weights(truth.privacy_budget, truth.data_size)
        assert np.isfinite(
            fm.aggregation.error_bound(weights, truth.privacy_budget, truth.data_size)
        ).all()
