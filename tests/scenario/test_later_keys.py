"""Scenarios of before mean what they meant, and have the hash that they had."""

import json

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import ScenarioError
from flmarket_sim.eventlog.reader import read_scenario
from flmarket_sim.scenario.later_keys import LATER_KEYS, as_it_was_meant, without_later_keys
from flmarket_sim.scenario.model import without_nulls
from flmarket_sim.scenario.scenario_file import build_scenario, load_scenario
from tests.support.paths import ROOT
from tests.support.sealed_json import write_sealed

PAPERS = {"perturbation": {"name": "laplace"}, "aggregation": {"error": "coordinate"}}
SMALL = {"rounds": 1, "data": {"name": "synthetic"}, "model": {"name": "none"}}
GAUSSIAN = {"name": "gaussian", "delta": 1e-6}


def test_the_papers_market_has_the_hash_that_it_had_before_perturbations():
    digest = load_scenario(ROOT / "scenarios/paper/iid.toml").digest()
    assert digest == "a627376d6b2950c36bd93519570a0a8113442bacecf0920386492929a4ed3baa"


def test_other_perturbations_errors_and_trainings_have_other_hashes():
    digests = {
        build_scenario(SMALL | PAPERS | changes).digest()
        for changes in (
            {},
            {"perturbation": {"name": "priv-unit"}},
            {"perturbation": {"name": "priv-unit", "length": "unit"}},
            {"aggregation": {"error": "vector"}},
            {"learning": {"update": "local"}},
            {"model": {"name": "none", "shrink": True}},
            {"buyers": [{"name": "anna"}]},
            {"buyers": [{"name": "anna", "perturbation": {"name": "duchi-l2"}}]},
        )
    }
    assert len(digests) == 8


def test_a_scenario_without_its_later_keys_is_read_as_it_was_meant():
    whole = build_scenario(SMALL | PAPERS | {"buyers": [{"name": "a", "model": {"name": "none"}}]})
    older = without_later_keys(whole.as_dict())
    assert "perturbation" not in older and "error" not in older["aggregation"]
    meant = as_it_was_meant(older)
    for part, key, before in LATER_KEYS:
        if part != "log":  # a table without keys of its own
            assert (meant if part is None else meant[part])[key] == before
    assert build_scenario(without_nulls(meant)) == whole


def test_an_older_run_is_read_as_it_was_meant(tmp_path):
    run = fm.run(build_scenario(SMALL | PAPERS), tmp_path / "run").path
    info = json.loads((run / "run.json").read_text())
    info["scenario"] = without_later_keys(info["scenario"])
    write_sealed(run / "run.json", info)
    scenario = read_scenario(run)
    assert scenario.perturbation.name == "laplace" and scenario.aggregation.error == "coordinate"


def test_hardened_noise_is_for_two_perturbations_only():
    tables = {"rounds": 1, "privacy": {"noise": "hardened"}, "model": {"name": "none"}}
    with pytest.raises(ScenarioError, match="'laplace' and 'duchi-l2' only"):
        build_scenario(tables)
    build_scenario(tables | {"perturbation": {"name": "laplace"}})
    build_scenario(tables | {"perturbation": {"name": "duchi-l2"}})
    buyers = [{"name": "a", "perturbation": {"name": "duchi-linf"}}]
    with pytest.raises(ScenarioError, match=r"buyers\[0\]\.perturbation"):
        build_scenario(tables | {"perturbation": {"name": "laplace"}, "buyers": buyers})


def test_one_ledger_has_one_promise():
    buyers = [{"name": "a"}, {"name": "b", "perturbation": GAUSSIAN}]
    with pytest.raises(ScenarioError, match="two promises"):
        build_scenario(SMALL | {"buyers": buyers})
    scenario = build_scenario(SMALL | {"perturbation": GAUSSIAN, "buyers": [{"name": "a"}]})
    assert scenario.resolved_buyers()[0].perturbation.options == {"delta": 1e-6}


def test_a_ledger_of_gaussian_releases_adds_up_delta(tmp_path):
    run = fm.run(build_scenario(SMALL | {"rounds": 3, "perturbation": GAUSSIAN}), tmp_path / "run")
    ledger = run.ledger.to_pydict()
    assert sum(ledger["gradients"]) > 0
    assert ledger["delta_sold"] == pytest.approx([1e-6 * count for count in ledger["gradients"]])
    assert set(run.events("gradient")["delta"].to_pylist()) == {1e-6}


def test_a_buyers_rule_counts_the_error_of_the_scenario_unless_she_says_otherwise():
    buyers = [
        {"name": "a", "aggregation": {"name": "convl-aggr"}},
        {"name": "b", "aggregation": {"name": "uniform", "error": "vector"}},
        {"name": "c"},
    ]
    resolved = build_scenario(SMALL | PAPERS | {"buyers": buyers}).resolved_buyers()
    assert [b.aggregation.error for b in resolved] == ["coordinate", "vector", "coordinate"]
    assert build_scenario(SMALL).aggregation.error == "vector"
