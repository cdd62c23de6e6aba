"""The examples are complete plug-ins: each runs and does what its page says."""

import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.plugins import registry
from flmarket_sim.studies.study_run import find_out
from flmarket_sim.testing import check_auction, check_perturbation, check_valuation
from tests.support.paths import ROOT
from tests.support.profiles import random_profiles

EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text()
COMMANDS = re.findall(r"^    flmarket (.*)$", PAGE, re.MULTILINE)


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(ROOT)


def market(command, out, **overrides):
    """The market of a `flmarket run` command of the page, in this process."""
    name, *options = shlex.split(command)[1:]
    settings = [
        value
        for option, value in zip(options[::2], options[1::2], strict=True)
        if option == "--set"
    ]
    scenario = fm.load_scenario(
        name, overrides=settings + [f"{key}={value}" for key, value in overrides.items()]
    )
    return fm.run(scenario, out).path


def test_every_market_of_the_page_runs(tmp_path):
    runs = [command for command in COMMANDS if command.startswith("run ")]
    assert len(runs) == 9
    for number, command in enumerate(runs):
        path = market(command, tmp_path / str(number), rounds=3)
        assert fm.read_events(path, "round").num_rows == 3


def test_the_page_lists_every_example():
    assert set(re.findall(r"\]\((\w+\.py)\)", PAGE)) == {
        path.name for path in EXAMPLES.glob("*.py")
    }


def test_the_auction_keeps_its_contract_and_pays_what_is_asked():
    properties = ("draws", "batch", "individually_rational", "budget_feasible")
    report = check_auction("sampled_price:SampledPrice", markets=5, only=properties)
    assert report.verdict("individually_rational", "any").held


@pytest.mark.parametrize("part", ["values", "privacy_budget", "data_size"])
def test_a_single_minded_owner_gains_nothing_by_a_misreport_to_the_sampled_price(part):
    auction = registry.auctions.create("sampled_price:SampledPrice")
    truth = random_profiles(np.random.default_rng(1), 200, 8, families=("step",))
    bids, budget = truth.bids(1), 0.5 * truth.total_value()

    def utility(reports):
        outcome = auction.decide(reports, budget, np.random.default_rng(0))
        return truth.utility(outcome.privacy_loss, outcome.payment, reports.data_size)[:, 0]

    honest = utility(bids)
    assert (honest > 0).any()
    for factor in (0.01, 0.5, 0.9, 1.1, 2.0) if part == "values" else (0.1, 0.5, 0.9):
        report = getattr(bids, part).copy()
        report[:, 0] = np.maximum(report[:, 0] * factor, 1.0 if part == "data_size" else 0.0)
        assert (utility(replace(bids, **{part: report})) - honest).max() <= 1e-9


@pytest.mark.parametrize(("precision", "twin"), [(0.0, "convl-aggr"), (1.0, "var-opt")])
def test_the_blended_weights_end_at_the_two_simple_rules(precision, twin):
    rng = np.random.default_rng(2)
    loss = rng.uniform(0.5, 2.0, (50, 6)) * (rng.random((50, 6)) < 0.7)
    size = np.floor(rng.lognormal(3, 1, (50, 6))) + 1
    rule = registry.aggregation.create("blended_weights:BlendedWeights", precision=precision)
    assert np.allclose(
        rule.weights(loss, size), registry.aggregation.create(twin).weights(loss, size)
    )


def test_a_wrong_option_of_the_rule_is_refused_in_one_paragraph():
    with pytest.raises(fm.FlmarketError, match="precision must lie in"):
        registry.aggregation.create("blended_weights:BlendedWeights", precision=2.0)


def test_the_floor_holds_for_everybody_who_sells_and_evenness_evens_the_weights_out():
    rng = np.random.default_rng(3)
    loss = rng.uniform(0.5, 2.0, (30, 6)) * (rng.random((30, 6)) < 0.7)
    loss[:, 0] = 1.0
    size = np.floor(rng.lognormal(3, 1, (30, 6))) + 1
    name = "weight_floor:WeightFloor"
    floor = registry.aggregation.create(name, floor=0.5).weights(loss, size)
    equal = (loss > 0) / (loss > 0).sum(axis=1, keepdims=True)
    assert (floor >= 0.5 * equal - 1e-8).all() and (floor[loss == 0] == 0).all()
    free = registry.aggregation.create(name, floor=0.0).weights(loss, size)
    assert free == pytest.approx(
        registry.aggregation.create("opt-aggr").weights(loss, size), abs=1e-6
    )
    even = registry.aggregation.create(name, evenness=1e3).weights(loss, size)
    assert np.abs(even - equal).max() < 0.01 < np.abs(free - equal).max()
    with pytest.raises(fm.FlmarketError, match="floor must be at least 0 and below 1"):
        registry.aggregation.create(name, floor=1.0)


def test_cautious_owners_offer_more_after_every_sale_and_never_more_than_they_have(tmp_path):
    path = market("run examples/cautious.toml", tmp_path / "run")
    bids = fm.sql(
        path,
        "select b.sender as owner, b.round, b.behaviour, "
        "b.privacy_budget / o.privacy_budget as part "
        "from bid b join owners o on o.owner = b.sender order by 1, 2",
    ).to_pylist()
    parts = {}
    for bid in bids:
        parts.setdefault((bid["behaviour"] or "", bid["owner"]), []).append(bid["part"])
    cautious = [part for (behaviour, _), part in parts.items() if behaviour == "cautious"]
    assert cautious and all(np.isclose(part[0], 0.25) for part in cautious)
    assert all((np.diff(part) >= -1e-9).all() and max(part) <= 1 + 1e-9 for part in cautious)
    assert any(np.isclose(part[-1], 1.0) for part in cautious)
    assert all(
        np.allclose(part, 1.0) for (behaviour, _), part in parts.items() if behaviour != "cautious"
    )


def test_a_cautious_behaviour_carries_its_parts_over_a_checkpoint():
    first = registry.behaviours.create("cautious:Cautious")
    first.part = np.array([0.25, 1.0])
    second = registry.behaviours.create("cautious:Cautious")
    second.restore(first.state())
    assert np.array_equal(second.part, first.part)


def test_the_study_finds_less_error_with_more_bidders():
    command = next(command for command in COMMANDS if command.startswith("study "))
    auctions = 'study.auctions=["all-in-critical", "proportional-share"]'
    small = [auctions, "study.profiles=50", "study.bidders=[5, 40]"]
    scenario = fm.load_scenario(command.split()[1], small)
    finding = find_out(scenario)
    errors = {(row["auction"], row["bidders"]): row["error"] for row in finding.rows}
    assert len(errors) == 4 and len(finding.sentences) == 2
    assert all(errors[name, 40] < errors[name, 5] for name, _ in errors)


@pytest.mark.parametrize("family", ["Power", "PowerOfData"])
def test_the_valuations_keep_their_contract(family):
    check_valuation(f"power_valuation:{family}")


def test_the_perturbation_keeps_its_contract_and_loses_all_that_it_may():
    check_perturbation("random_sign:RandomSign", draws=5_000)
    made = registry.perturbations.create("random_sign:RandomSign")
    found = fm.privacy.audit(made, 1.0, draws=20_000, one_by_one=100)
    assert found.passed and found.lower_bound > 0.93
