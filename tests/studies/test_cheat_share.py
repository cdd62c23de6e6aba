"""Accuracy and error by the share of cheats, against markets played one by one."""

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.experiments.market_runs import changed, load_data
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.studies.study_run import find_out
from tests.support.paths import ROOT

SCENARIO = ROOT / "scenarios/studies/cheat-share.toml"
SMALL = [
    "rounds=3",
    "model.evaluate_every=3",
    "study.seeds=2",
    "study.shares=[0.0, 0.4]",
    'study.cheats=[{name="sign-flip", scale=10.0}]',
    'study.pipelines=[{name="weighted sum"}, '
    '{name="median", changes={robust="coordinate-median"}}]',
]


def test_every_row_is_the_mean_of_markets_that_anybody_can_play():
    scenario = fm.load_scenario(SCENARIO, SMALL)
    rows = find_out(scenario).rows
    assert len(rows) == 4 and {row["cheat"] for row in rows} == {"sign-flip, scale = 10.0"}
    honest = {}
    for row in sorted(rows, key=lambda row: (row["share"], row["pipeline"] != "weighted sum")):
        robust = {"weighted sum": "weighted-sum", "median": "coordinate-median"}[row["pipeline"]]
        errors, accuracies = [], []
        for seed in (scenario.seed, scenario.seed + 1):
            cheats = [{"name": "sign-flip", "scale": 10.0, "share": row["share"]}]
            market = changed(scenario, seed=seed, robust=robust, owners__cheats=cheats)
            rounds = rounds_only(market, load_data(market))
            errors.append(np.mean([each["true_error"] for each in rounds if each["valid"]]))
            accuracies.append(rounds[-1]["accuracy"])
            if not row["share"] and robust == "weighted-sum":
                honest[seed] = errors[-1]
        ratios = np.array(errors) / list(honest.values())
        assert row["accuracy"] == pytest.approx(np.mean(accuracies))
        assert row["true_error"] == pytest.approx(np.mean(errors))
        assert row["error_ratio"] == pytest.approx(np.mean(ratios))
    ratio = {(row["pipeline"], row["share"]): row["error_ratio"] for row in rows}
    assert ratio["weighted sum", 0.0] == 1.0
    assert ratio["weighted sum", 0.4] > 5 * ratio["median", 0.4]


def test_another_measure_is_drawn_and_said():
    finding = find_out(fm.load_scenario(SCENARIO, [*SMALL, "study.show=error_ratio"]))
    assert finding.plot.y == "error_ratio" and finding.sentences[0].count("error ratio") == 1
    assert finding.shown[3:] == ("error_ratio", "accuracy")


def test_an_unknown_cheat_or_option_is_refused_before_anything_runs():
    for cheat, why in (
        ('{name="no-such-cheat"}', "no-such-cheat"),
        ('{name="stale", scale=2}', "scale"),
    ):
        with pytest.raises(fm.FlmarketError, match=why):
            find_out(fm.load_scenario(SCENARIO, [f"study.cheats=[{cheat}]"]))
