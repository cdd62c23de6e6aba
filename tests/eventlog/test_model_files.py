"""Reading kept models: what is asked for in a wrong way, lost or damaged is named."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.sealed_json import write_sealed

TABLES = {
    "rounds": 2,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50},
    "owners": {"count": 24},
    "market": {"bidders": 6},
    "log": {"models": "every"},
}
TWO = {"buyers": [{"name": "Anna B."}, {"name": "bert", "model": {"name": "none"}}]}


@pytest.fixture
def run(tmp_path):
    return fm.run(build_scenario(TABLES), tmp_path / "run")


def file_of(run, rounds):
    return run.path / f"models/buyer-0/rounds-{rounds:05d}.safetensors"


def test_a_model_has_its_parameters_and_the_gradient_that_led_to_it(run):
    first, last = run.model(rounds=0), run.model()
    assert first.gradient is None and not first.parameters.any(), "logistic regression starts at 0"
    before = run.model(rounds=1).parameters
    np.testing.assert_array_equal(last.parameters, before - 0.01 * last.gradient)
    assert repr(last) == "<KeptModel of buyer after 2 rounds: 15 parameters>"


def test_any_reader_of_safetensors_reads_the_file(run):
    tensors = load_file(file_of(run, 2))
    np.testing.assert_array_equal(tensors["parameters"], fm.read_model(run).parameters)
    assert set(tensors) == {"parameters", "gradient"}


def test_what_was_not_kept_is_refused_with_what_was(tmp_path, run):
    with pytest.raises(InputError, match="after 9 rounds; it has those after 0, 1, 2"):
        run.model(rounds=9)
    with pytest.raises(InputError, match="no models of a buyer 'byer'; did you mean 'buyer'"):
        run.model(buyer="byer")
    with pytest.raises(InputError, match="no models of a buyer 'byer'"):
        list(run.models(buyer="byer"))
    without = fm.run(build_scenario(TABLES | {"log": {"models": "never"}}), tmp_path / "without")
    with pytest.raises(InputError, match=r"no kept models: \[log\] models"):
        without.model()
    assert list(without.models()) == []


def test_buyers_are_named_and_those_who_learn_nothing_have_no_model(tmp_path):
    one = fm.run(build_scenario(TABLES | TWO), tmp_path / "one")
    assert one.model().buyer == "Anna B."
    both = TABLES | {"buyers": [{"name": "anna"}, {"name": "bert"}]}
    two = fm.run(build_scenario(both), tmp_path / "two")
    with pytest.raises(InputError, match="choose one of anna, bert"):
        two.model()
    assert [(m.buyer, m.rounds) for m in two.models()] == [
        (name, rounds) for name in ("anna", "bert") for rounds in range(3)
    ]
    assert [m.rounds for m in two.models("bert")] == [0, 1, 2]
    with pytest.raises(InputError, match="'bert' has no model"):
        fm.buyer_model(one.scenario, fm.load_data(one.scenario), "bert")
    with pytest.raises(InputError, match=r"no buyer 'carl'; there are Anna B\., bert"):
        fm.buyer_model(one.scenario, fm.load_data(one.scenario), "carl")


def test_lost_and_damaged_files_are_named(run):
    path, whole = file_of(run, 1), file_of(run, 1).read_bytes()
    for wrong in (whole[:-8], whole[:-1] + b"\x00", b"", file_of(run, 2).read_bytes()):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=r"rounds-00001\.safetensors is damaged"):
            run.model(rounds=1)
    path.unlink()
    with pytest.raises(InputError, match=r"rounds-00001\.safetensors is lost"):
        list(run.models())


@pytest.mark.parametrize(
    "content",
    [
        b"not a file of tensors",
        save({"weights": np.zeros(3)}),
        save({"parameters": np.zeros(3, np.float32)}),
        save({"parameters": np.zeros((3, 1))}),
        save({"parameters": np.zeros(3), "gradient": np.zeros(4)}),
    ],
)
def test_a_file_that_is_no_model_is_refused_where_no_hash_protects_it(run, content):
    info = run.info
    del info["models"]
    write_sealed(run.path / "run.json", info | {"outcome": "running"})
    file_of(run, 1).write_bytes(content)
    with pytest.raises(InputError, match=r"rounds-00001\.safetensors does not hold a model"):
        run.model(rounds=1)


@pytest.mark.parametrize("models", [3, {"buyer": 3}, {"buyer": {"x": "y"}}, []])
def test_wrong_hashes_in_run_json_are_refused(run, models):
    write_sealed(run.path / "run.json", run.info | {"models": models})
    with pytest.raises(InputError, match=r"run\.json is damaged: 'models"):
        run.model()
