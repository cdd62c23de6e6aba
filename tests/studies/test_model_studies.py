"""Studies of what markets sell: pipelines, buyers' curves, regimes, bargains."""

import numpy as np
import pytest

from flmarket_sim.errors import FlmarketError
from flmarket_sim.plugins.registry import perturbations
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.statistics import from_seeds
from flmarket_sim.studies.accuracy_references import CONSTANT, CONSTANT_GUESS, WITHOUT_NOISE
from flmarket_sim.studies.bargains import size_groups
from flmarket_sim.studies.study_run import find_out

NOISELESS = {"name": "flmarket_sim.studies.noiseless:Noiseless", "domain": "sphere"}
SMALL = {
    "rounds": 6,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3},
    "owners": {"count": 20},
    "perturbation": {"name": "priv-unit", "length": "unit"},
    "model": {"name": "logistic", "learning_rate": 0.1, "evaluate_every": 3},
}


def study(**options):
    return find_out(build_scenario(SMALL | {"study": options}))


def test_pipelines_meet_the_same_seeds_beside_a_constant_guess():
    found = study(
        name="pipelines",
        seeds=3,
        markets=[{"name": "one"}],
        pipelines=[
            {"name": "plain"},
            {"name": "again"},
            {"name": "no noise", "changes": {"perturbation": NOISELESS}},
            {"name": "here", "in_markets": {"one": {"perturbation": "laplace"}}},
        ],
    )
    by_name = {row["pipeline"]: row for row in found.rows}
    assert by_name["plain"]["accuracy"] == by_name["again"]["accuracy"]
    assert by_name["again"]["gain"] == 0 and by_name["again"]["gain_low"] == 0
    assert by_name["no noise"]["true_error"] < 0.1 * by_name["plain"]["true_error"]
    assert by_name["here"]["true_error"] != by_name["plain"]["true_error"]
    assert by_name[CONSTANT]["balanced_accuracy"] == pytest.approx(1 / 3)
    assert 0.5 < by_name["plain"]["true_over_vector"] < 1.2
    drawn = [row["round"] for row in found.drawn if row["pipeline"] == CONSTANT]
    assert drawn == [3, 6]
    best = max(by_name.values(), key=lambda row: np.nan_to_num(row["noiseless_accuracy"]))
    lines = [row for row in found.drawn if row["pipeline"] == WITHOUT_NOISE]
    assert [row["round"] for row in lines] == [3, 6]
    assert {row["accuracy"] for row in lines} == {best["noiseless_accuracy"]}
    assert best["noiseless_accuracy"] > by_name[CONSTANT]["accuracy"]
    assert f"to {best['noiseless_accuracy']:.3f})" in found.sentences[0]
    mean = by_name["plain"]["accuracy"]
    assert f"plain {mean:.3f}" in found.sentences[0]


def test_a_market_gain_is_the_mean_of_differences_seed_by_seed():
    markets = [
        {"name": "quiet", "changes": {"perturbation": NOISELESS}},
        {"name": "noisy", "changes": {"owners.privacy_budget": 0.05}},
    ]
    pipelines = [{"name": "plain"}, {"name": "laplace", "changes": {"perturbation": "laplace"}}]

    def rows(**where):
        found = study(name="pipelines", markets=markets, pipelines=pipelines, **where).rows
        return {(row["market"], row["pipeline"]): row for row in found}

    both = rows(seeds=2)
    first = rows(seeds=1)
    for place in (("noisy", "plain"), ("noisy", "laplace")):
        apart = [of[place]["accuracy"] - of["quiet", "plain"]["accuracy"] for of in (first, both)]
        second = 2 * apart[1] - apart[0]  # of the second seed alone
        spread = from_seeds(np.array([apart[0], second]))
        ends = [both[place][f"market_gain{end}"] for end in ("", "_low", "_high")]
        assert ends == pytest.approx([spread.mean, spread.low, spread.high]) and ends[0] < 0
    assert both["quiet", "plain"]["market_gain"] == both["quiet", "plain"]["market_gain_low"] == 0


def test_a_pipeline_with_a_wrong_path_is_refused_by_name():
    with pytest.raises(FlmarketError, match="perturbatoin"):
        study(
            name="pipelines",
            seeds=1,
            markets=[{"name": "one"}],
            pipelines=[{"name": "typo", "changes": {"perturbatoin": "laplace"}}],
        )


def test_a_buyers_curve_has_every_auction_pipeline_and_budget():
    found = study(
        name="buyers-curve",
        auctions=["all-in-critical", "pay-as-bid"],
        pipelines=[{"name": "ours"}, {"name": "paper", "changes": {"perturbation": "laplace"}}],
        factors=[0.2, 2.0],
        seeds=2,
    )
    assert len(found.rows) == 8
    for column in ("constant_guess", "noiseless_accuracy"):
        own = {row["pipeline"]: set() for row in found.rows}
        for row in found.rows:
            own[row["pipeline"]].add(row[column])
        assert all(len(levels) == 1 for levels in own.values()), "no auction or budget changes it"
    lines = [row for row in found.drawn if row["auction"] in (WITHOUT_NOISE, CONSTANT_GUESS)]
    assert len(lines) == 2 * 2 * 2 and len(found.drawn) == 16
    spent = {
        (row["pipeline"], row["auction"], row["budget_factor"]): row["spent"] for row in found.rows
    }
    assert all(spent[p, a, 2.0] > spent[p, a, 0.2] for p, a, factor in spent if factor == 0.2)
    for sentence, name in zip(found.sentences, ("ours", "paper"), strict=True):
        assert sentence.startswith(f"{name}: at factor 0.2 ")
        for factor in (0.2, 2.0):
            rows = [r for r in found.rows if (r["pipeline"], r["budget_factor"]) == (name, factor)]
            best = max(rows, key=lambda row: row["accuracy"])
            assert f"{best['auction']} is best with {best['accuracy']:.3f} [" in sentence


def test_told_the_error_opt_aggr_is_best_and_turns_into_var_opt():
    found = study(name="regimes", auctions=["all-in-critical"], kappas=[8.0, 1e5], profiles=30)
    at = {(row["rule"], row["kappa"]): row["over_everything"] for row in found.rows}
    rules = {rule for rule, _ in at}
    for kappa in (8.0, 1e5):
        assert at["opt-aggr", kappa] == min(at[rule, kappa] for rule in rules)
    assert at["opt-aggr, told kappa = 8", 8.0] == at["opt-aggr", 8.0]
    assert at["opt-aggr, told kappa = 8", 1e5] > at["opt-aggr", 1e5]
    assert at["var-opt", 1e5] == pytest.approx(at["opt-aggr", 1e5], rel=1e-3)
    for sentence, kappa in zip(found.sentences, (8.0, 1e5), strict=True):
        medians = [r["over_everything_median"] for r in found.rows if r["kappa"] == kappa]
        assert f"kappa = {kappa:g}:" in sentence and f" {min(medians):.2f} [" in sentence


def test_groups_are_by_rank_and_shares_are_of_one_whole():
    sizes = np.array([[5.0, 1.0, 9.0, 7.0, 3.0, 2.0]])
    assert size_groups(sizes, 3).tolist() == [[1, 0, 2, 2, 1, 0]]
    found = study(name="bargains", kappas=[0.1, 4920.0], profiles=12)
    for kappa in (0.1, 4920.0):
        rows = [row for row in found.rows if row["kappa"] == kappa]
        assert sum(row["money_share"] for row in rows) == pytest.approx(1)
        assert sum(row["records_share"] for row in rows) == pytest.approx(1)
    smallest = {r["kappa"]: r["sold_share"] for r in found.rows if r["group"] == "smallest"}
    assert smallest[4920.0] > smallest[0.1]
    for sentence, kappa in zip(found.sentences, (0.1, 4920.0), strict=True):
        assert f"kappa = {kappa:g}: first-best buys {smallest[kappa]:.0%} of" in sentence


def test_a_release_without_noise_promises_nothing():
    made = perturbations.create(NOISELESS["name"], domain="sphere")
    gradients = made.prepare(np.array([[3.0, 4.0]]))
    released = made.release(gradients, [1.0], np.random.default_rng(0))
    assert (released == gradients).all() and released is not gradients
    assert made.delta == 1.0
