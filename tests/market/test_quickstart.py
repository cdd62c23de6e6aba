"""The quickstart keeps what the README says of it."""

import numpy as np
import pytest

import flmarket_sim as fm
from tests.support.paths import ROOT

QUICKSTART = ROOT / "scenarios/quickstart.toml"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fm.run(QUICKSTART, tmp_path_factory.mktemp("quickstart") / "run")


def test_it_ends_above_eighty_per_cent(run):
    assert run.summary()["buyers"]["buyer"]["final_accuracy"] > 0.8


def test_nobody_sells_more_than_four_at_once_and_sums_are_shown(run):
    assert max(run.events("gradient")["privacy_loss"].to_pylist()) <= 4
    sold = np.array(run.ledger["privacy_sold"].to_pylist())
    summary = run.summary()
    assert summary["largest_privacy_sold"] == sold.max()
    assert summary["mean_privacy_sold"] == pytest.approx(sold[sold > 0].mean())


def test_with_the_papers_release_it_stays_near_chance(tmp_path):
    scenario = fm.load_scenario(QUICKSTART, ["perturbation=laplace", "model.evaluate_every=50"])
    run = fm.run(scenario, tmp_path / "run")
    assert run.summary()["buyers"]["buyer"]["final_accuracy"] < 0.2


def test_it_runs_with_every_perturbation_and_with_constrained_weights(tmp_path):
    for number, settings in enumerate(
        [
            ["perturbation=duchi-linf"],
            ["perturbation=piecewise"],
            ["perturbation=gaussian"],
            ["perturbation=proj-unit"],
            ["aggregation.name=constrained", "aggregation.cap=0.2"],
            ["model.optimizer=adam", "model.learning_rate=0.01"],
        ]
    ):
        scenario = fm.load_scenario(QUICKSTART, ["rounds=2", *settings])
        run = fm.run(scenario, tmp_path / str(number))
        assert all(row["valid"] for row in run.rounds.to_pylist()), settings
