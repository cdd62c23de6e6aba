"""What a run says beside its accuracy: the constant guess, and the model without noise."""

import json

import pytest

import flmarket_sim as fm
from flmarket_sim.eventlog.totals import YARDSTICKS
from flmarket_sim.market import yardsticks
from flmarket_sim.market.simulation import accuracy_yardsticks
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.sealed_json import write_sealed

MARKET = {
    "rounds": 6,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3},
    "owners": {"count": 20},
    "learning": {"update": "local", "steps": 3},
    "model": {"name": "logistic", "learning_rate": 0.5},
}


def totals(run):
    return run.summary()["buyers"]


def test_a_single_owner_who_sells_without_noise_reaches_it_exactly(tmp_path):
    """A market of one owner, no noise and enough money is the training without a market."""
    alone = MARKET | {
        "owners": {"count": 1},
        "market": {"bidders": 1},
        "budget": {"factor": 10.0},
        "auction": {"name": "all-in"},
        "perturbation": {"name": "flmarket_sim.studies.noiseless:Noiseless", "domain": "sphere"},
    }
    for number, update in enumerate(("gradient", "local")):
        scenario = build_scenario(alone | {"learning": {"update": update, "steps": 3}})
        own = totals(fm.run(scenario, tmp_path / str(number)))["buyer"]
        assert own["invalid_rounds"] == 0
        assert own["noiseless_accuracy"] == pytest.approx(own["final_accuracy"], abs=0.01)
        assert own["noiseless_accuracy"] > own["constant_guess"]


def test_it_does_not_depend_on_what_is_bought(tmp_path):
    found = [
        totals(fm.run(build_scenario(MARKET | changes), tmp_path / str(number)))["buyer"]
        for number, changes in enumerate(
            ({}, {"auction": {"name": "all-in"}}, {"budget": {"factor": 0.2}})
        )
    ]
    assert len({own["final_accuracy"] for own in found}) > 1
    for name in YARDSTICKS:
        assert len({own[name] for own in found}) == 1


def test_every_buyer_has_her_own(tmp_path):
    slow = {"name": "slow", "model": {"name": "logistic", "learning_rate": 1e-6}}
    none = {"name": "none", "model": {"name": "none"}}
    scenario = build_scenario(MARKET | {"buyers": [{"name": "ann"}, slow, none]})
    run = fm.run(scenario, tmp_path / "run")
    found = totals(run)
    assert found["ann"]["noiseless_accuracy"] > found["slow"]["noiseless_accuracy"]
    assert found["ann"]["constant_guess"] == found["slow"]["constant_guess"]
    assert all(found["none"][name] is None for name in YARDSTICKS)
    assert found["none"]["final_balanced_accuracy"] is None
    assert run.info["yardsticks"].keys() == {"ann", "slow"}


def test_a_stopped_run_ends_with_the_same_numbers(tmp_path):
    scenario = build_scenario(MARKET)
    whole = fm.run(scenario, tmp_path / "whole")

    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, tmp_path / "stopped", progress=stop)
    stopped = fm.Run(tmp_path / "stopped")
    assert "yardsticks" not in stopped.info
    assert totals(stopped)["buyer"]["noiseless_accuracy"] is None
    resumed = fm.resume(tmp_path / "stopped")
    for key in ("yardsticks", "log", "scenario_sha256"):
        assert resumed.info[key] == whole.info[key]
    assert accuracy_yardsticks(scenario, fm.load_data(scenario)) == whole.info["yardsticks"]


def test_a_run_that_is_stopped_while_it_trains_without_noise_goes_on(tmp_path, monkeypatch):
    scenario = build_scenario(MARKET)
    whole = fm.run(scenario, tmp_path / "whole")

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(yardsticks, "train_without_noise", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fm.run(scenario, tmp_path / "stopped")
    assert fm.Run(tmp_path / "stopped").info["outcome"] == "interrupted"
    resumed = fm.resume(tmp_path / "stopped")
    assert resumed.info["yardsticks"] == whole.info["yardsticks"]
    assert resumed.info["log"] == whole.info["log"]


def test_it_is_left_out_where_the_scenario_says_so_or_it_takes_too_long(tmp_path, monkeypatch):
    never = build_scenario(MARKET | {"log": {"ceiling": "never"}})
    run = fm.run(never, tmp_path / "never")
    own = totals(run)["buyer"]
    assert own["noiseless_accuracy"] is None and own["constant_guess"] is not None
    assert "notes" not in run.info
    monkeypatch.setattr(yardsticks, "MOST_WORK", 1.0)
    run = fm.run(build_scenario(MARKET), tmp_path / "auto")
    assert totals(run)["buyer"]["noiseless_accuracy"] is None
    assert "log.ceiling = 'auto'" in run.summary()["notes"][0]
    always = build_scenario(MARKET | {"log": {"ceiling": "always"}})
    run = fm.run(always, tmp_path / "always")
    assert totals(run)["buyer"]["noiseless_accuracy"] is not None


def test_events_and_hash_of_a_scenario_do_not_depend_on_it(tmp_path):
    runs = {
        ceiling: fm.run(
            build_scenario(MARKET | {"log": {"ceiling": ceiling}}), tmp_path / str(ceiling)
        )
        for ceiling in ("auto", "never")
    }
    assert runs["auto"].info["log"] == runs["never"].info["log"]
    assert runs["auto"].info["scenario_sha256"] == build_scenario(MARKET).digest()


def test_a_model_that_does_not_stay_finite_is_a_note_and_no_failure(tmp_path):
    wild = {"name": "logistic", "learning_rate": 1e300, "optimizer": {"name": "momentum"}}
    scenario = build_scenario(MARKET | {"model": wild, "budget": {"factor": 1e-6}})
    run = fm.run(scenario, tmp_path / "run")
    assert all(not row["valid"] for row in run.rounds.to_pylist()), "nobody can be bought"
    assert totals(run)["buyer"]["noiseless_accuracy"] is None
    assert "is not finite" in run.summary()["notes"][0]


def test_runs_of_earlier_versions_have_none(tmp_path):
    run = fm.run(build_scenario(MARKET), tmp_path / "run")
    info = json.loads((run.path / "run.json").read_text())
    for key in ("yardsticks", "warnings"):
        info.pop(key, None)
    del info["scenario"]["log"]["ceiling"]
    write_sealed(run.path / "run.json", info)
    assert totals(run)["buyer"]["noiseless_accuracy"] is None
    assert run.summary()["warnings"] == []
    assert run.scenario.digest() == info["scenario_sha256"]
