"""Robust rules and contributions in a market that runs."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import ScenarioError
from flmarket_sim.scenario.scenario_file import build_scenario

MARKET = {
    "rounds": 2,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50},
    "owners": {"count": 24},
    "market": {"bidders": 8},
    "budget": {"factor": [0.6, 1.2]},
}
KEPT = {"log": {"models": "every"}}


def run(tmp_path, name="run", **tables):
    return fm.run(build_scenario(MARKET | tables), tmp_path / name)


def paid(market):
    return market.sql("select round, receiver, amount from payment where sender = -1").to_pylist()


def test_a_market_says_nothing_of_robust_rules_or_contributions_unless_it_is_asked(tmp_path):
    market = run(tmp_path)
    for kind in ("combination", "contribution"):
        assert not list(market.path.rglob(f"{kind}*.parquet"))


def test_the_weighted_sum_by_name_is_the_market_without_the_key(tmp_path):
    plain, named = build_scenario(MARKET), build_scenario(MARKET | {"robust": "weighted-sum"})
    assert plain.digest() == named.digest()


@pytest.mark.parametrize("name", ["coordinate-median", "geometric-median", "multi-krum"])
def test_a_robust_rule_delivers_another_gradient_and_logs_how_far_it_went(tmp_path, name):
    many = KEPT | {"market": {"bidders": 20}}
    plain, robust = run(tmp_path, "plain", **many), run(tmp_path, "robust", robust=name, **many)
    one, other = (market.model(1).gradient for market in (plain, robust))
    row = robust.sql("select * from combination where round = 0").to_pylist()[0]
    assert row["departure"] == pytest.approx(float(np.square(one - other).sum()))
    errors = "select vector_bound, error_bound, true_error from delivery where round = 0"
    before, after = (market.sql(errors).to_pylist()[0] for market in (plain, robust))
    assert before["error_bound"] == after["error_bound"]
    assert before["true_error"] != after["true_error"]
    bound = (after["vector_bound"] ** 0.5 + row["departure"] ** 0.5) ** 2
    assert row["honest_bound"] == pytest.approx(bound)


def test_every_buyer_may_have_a_robust_rule_of_her_own(tmp_path):
    buyers = [{"name": "anna"}, {"name": "bert", "robust": {"name": "krum", "cheats": 0.1}}]
    market = run(tmp_path, buyers=buyers)
    assert {row["buyer"] for row in market.sql("select buyer from combination").to_pylist()} == {
        "bert"
    }


@pytest.mark.parametrize("value", ["error-bound", "validation-loss"])
def test_contributions_are_a_column_and_change_nothing_else(tmp_path, value):
    asked = {"name": "shapley", "value": value, "exact": 1, "permutations": 10}
    plain, logged = run(tmp_path, "plain"), run(tmp_path, "logged", contribution=asked)
    assert paid(plain) == paid(logged)
    rows = logged.sql("select * from contribution").to_pylist()
    assert len(rows) == len(paid(plain)) and all(row["standard_error"] >= 0 for row in rows)


@pytest.mark.parametrize("pays", ["auction", "budget"])
def test_contributions_divide_the_money_and_no_more(tmp_path, pays):
    market = run(tmp_path, contribution={"name": "leave-one-out", "pays": pays})
    plain = run(tmp_path, "plain")
    rounds = market.sql("select round, spent, budget from rounds order by round").to_pylist()
    by_auction = plain.sql("select spent from rounds where round = 0").to_pylist()[0]["spent"]
    for row in rounds:
        mine = [p for p in paid(market) if p["round"] == row["round"]]
        assert sum(p["amount"] for p in mine) == pytest.approx(row["spent"])
        assert row["spent"] <= row["budget"] * (1 + 1e-9)
        if pays == "budget":
            assert row["spent"] == pytest.approx(row["budget"])
    if pays == "auction":
        assert rounds[0]["spent"] == pytest.approx(by_auction)
    shares = market.sql("select share, receiver from contribution where round = 0").to_pylist()
    amounts = {p["receiver"]: p["amount"] for p in paid(market) if p["round"] == 0}
    for row in shares:
        assert amounts[row["receiver"]] == pytest.approx(row["share"] * rounds[0]["spent"])


def test_a_market_without_learning_has_contributions_by_the_error_bound_only(tmp_path):
    nobody_learns = {"model": {"name": "none", "dimension": 30}, "robust": "krum"}
    market = run(tmp_path, contribution="leave-one-out", **nobody_learns)
    assert market.sql("select count(*) n from contribution").to_pylist()[0]["n"] > 0
    assert market.sql("select departure from combination").to_pylist()[0]["departure"] is None
    with pytest.raises(ScenarioError, match=r"contribution\.value.*model 'none'"):
        build_scenario(MARKET | nobody_learns | {"contribution": {"value": "validation-loss"}})


@pytest.mark.parametrize(
    ("tables", "complaint"),
    [
        ({"robust": "krumm"}, "did you mean 'krum'"),
        ({"robust": {"name": "krum", "cheats": 0.7}}, "cheats"),
        ({"contribution": {"name": "shapley", "exakt": 3}}, "exakt"),
        ({"contribution": {"pays": "all"}}, "pays"),
    ],
)
def test_what_is_wrong_is_named(tables, complaint):
    with pytest.raises(ScenarioError, match=complaint):
        build_scenario(MARKET | tables)


def test_the_same_seed_gives_the_same_contributions(tmp_path):
    tables = {"robust": "multi-krum", "contribution": {"exact": 1, "permutations": 5}}
    first, again = run(tmp_path, "one", **tables), run(tmp_path, "two", **tables)
    for kind in ("combination", "contribution"):
        question = f"select * from {kind} order by seq"
        assert first.sql(question).to_pylist() == again.sql(question).to_pylist()
