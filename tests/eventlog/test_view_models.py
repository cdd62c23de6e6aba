"""A kept model is seen by its buyer, and by those who were sent it in a round."""

import json

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import write_view
from flmarket_sim.eventlog.tables import TABLES
from flmarket_sim.scenario.scenario_file import build_scenario

MARKET = {
    "rounds": 6,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50},
    "owners": {
        "count": 24,
        "availability": 0.9,
        "behaviours": [{"name": "false-names", "share": 0.3, "identities": 2}],
    },
    "market": {"bidders": 6},
    "log": {"models": "every"},
    "buyers": [{"name": "anna"}, {"name": "bert", "model": {"averaging": 0.5}}],
}

OF_CHEATS = ("cheat", "privacy_lost", "forfeited", "true_cost", "judged", "accused")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fm.run(build_scenario(MARKET), tmp_path_factory.mktemp("run") / "whole")


def models_of(view):
    return {(model.buyer, model.rounds): model for model in fm.read_models(view)}


@pytest.fixture
def seen(run, tmp_path):
    def look(who):
        write_view(run, who, tmp_path / who)
        return models_of(tmp_path / who)

    return look


def test_a_buyer_sees_all_her_models_and_none_of_another(run, seen):
    whole = models_of(run)
    for name in ("anna", "bert"):
        found = seen(f"buyer:{name}")
        assert set(found) == {(name, rounds) for rounds in range(7)}
        for key, model in found.items():
            np.testing.assert_array_equal(model.parameters, whole[key].parameters)
            np.testing.assert_array_equal(model.gradient, whole[key].gradient)


def test_a_broker_sees_the_models_that_were_announced(run, seen):
    found = seen("broker")
    assert set(found) == {(name, r) for name in ("anna", "bert") for r in range(6)}, (
        "nobody announces the last model"
    )
    assert any(model.gradient is not None for model in found.values()), "she has delivered it"


def test_an_owner_sees_the_models_that_she_was_sent_without_what_led_to_them(run, seen):
    whole, some = models_of(run), 0
    messages = run.events("model").to_pylist()
    for owner in range(24):
        sent = {(m["buyer"], m["round"]) for m in messages if m["receiver"] % 24 == owner}
        found = seen(f"owner:{owner}")
        assert set(found) == sent
        for key, model in found.items():
            np.testing.assert_array_equal(model.parameters, whole[key].parameters)
            assert model.gradient is None, "two models in a row would tell; one does not"
        some += bool(sent)
    assert some > 0


def test_the_mean_of_a_buyers_models_is_hers_alone(seen):
    own = seen("buyer:bert")
    assert all((model.average is None) == (model.rounds == 0) for model in own.values())
    assert all(model.average is None for model in seen("buyer:anna").values())
    for who in ("broker", *(f"owner:{owner}" for owner in range(24))):
        assert all(model.average is None for model in seen(who).values()), who


def test_who_was_sent_nothing_is_told_so(run, seen, tmp_path):
    messages = {m["receiver"] % 24 for m in run.events("model").to_pylist()}
    without = next(owner for owner in range(24) if owner not in messages)
    assert seen(f"owner:{without}") == {}
    with pytest.raises(InputError, match=f"owner:{without} was sent none"):
        fm.read_model(tmp_path / f"owner:{without}")
    assert not (tmp_path / f"owner:{without}" / "models").exists()


def test_no_view_names_the_hash_of_a_model_that_it_does_not_have(run, seen, tmp_path):
    for who in ("owner:3", "broker", "buyer:bert"):
        have = seen(who)
        told = json.loads((tmp_path / who / "run.json").read_text()).get("models", {})
        assert {(name, int(r)) for name, kept in told.items() for r in kept} == set(have)


def test_an_owner_sees_her_own_records_and_nobody_elses(run, seen, tmp_path):
    everybody = run.owners.to_pylist()
    for owner in (0, 7, 23):
        seen(f"owner:{owner}")
        assert fm.read_owners(tmp_path / f"owner:{owner}").to_pylist() == [everybody[owner]]
    seen("broker")
    with pytest.raises(InputError, match="does not know"):
        fm.read_owners(tmp_path / "broker")


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """The same market with owners who cheat, and a buyer whose broker looks for them."""
    cheats = {"cheats": [{"name": "sign-flip", "share": 0.3}]}
    market = MARKET | {"rounds": 2, "owners": MARKET["owners"] | cheats}
    market |= {"check": {"name": "variance"}}
    return fm.run(build_scenario(market), tmp_path_factory.mktemp("watched") / "run")


def test_every_column_of_owners_and_ledger_says_who_sees_it(run, watched):
    for name in ("owners", "ledger"):
        known = [column.name for column in TABLES[name] if column.name != "name"]  # of real owners
        assert getattr(watched, name).column_names == known
        honest = [column for column in known if column not in OF_CHEATS]
        assert getattr(run, name).column_names == honest


def test_a_view_does_not_have_the_scenario(run, seen, tmp_path):
    seen("broker")
    with pytest.raises(InputError, match="who does not know the scenario"):
        _ = fm.Run(tmp_path / "broker").scenario
