"""Every column of a run follows from its files and its data set, accuracy and true error too."""

import shutil
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from benchmarks.kills import fingerprint
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog import KINDS, parquet_log
from flmarket_sim.market import checkpoint
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.eventlog.column_comparison import both_columns, differences
from tests.eventlog.file_twin import FileTwin, contradictions
from tests.eventlog.log_twin import LogTwin
from tests.eventlog.market_twin import Key, MarketTwin
from tests.eventlog.test_every_column import DELAYS, MARKETS, PAPERS, SMALL
from tests.support.sealed_json import without_hashes

LEARNING = {
    "data": SMALL,
    "owners": {
        "count": 24,
        "availability": 0.9,
        "dropout": 0.1,
        "lifetime_budget": 6.0,
        "records_per_second": [5.0, 50.0],
    },
    "market": {"bidders": 10, "delay": DELAYS, "gradient_deadline": 8.0},
    "privacy": {"clip": 0.5},
    "budget": {"factor": [0.4, 1.2]},
    "log": {"models": "every"},
    **PAPERS,
}
DIRECTIONS = {
    "perturbation": {"name": "priv-unit", "length": "unit"},
    "aggregation": "opt-aggr",
    "privacy": {"clip": 0.1},
    "model": {"name": "logistic", "learning_rate": 2.0, "shrink": True},
}
TWO = [
    {"name": "anna", "model": {"name": "logistic", "learning_rate": 0.5}},
    {"name": "bert", "auction": {"name": "all-in"}},
]
RUNS = {
    "liars, stopped and simulated again": MARKETS["liars who teach a model"]
    | {"log": {"models": "every"}},
    "two buyers": LEARNING | {"rounds": 4, "buyers": TWO},
    "resumed from a checkpoint": LEARNING | {"rounds": 6},
    "directions alone": LEARNING | {"rounds": 3} | DIRECTIONS,
    "local steps, momentum and means": LEARNING
    | {
        "rounds": 7,
        "perturbation": {"name": "laplace"},
        "aggregation": {"name": "opt-aggr", "error": "coordinate"},
        "learning": {"update": "local", "steps": 3, "learning_rate": 0.2, "batch": 7},
        "model": {
            "name": "logistic",
            "learning_rate": 0.3,
            "optimizer": {"name": "momentum", "momentum": 0.8},
            "schedule": {"name": "cosine"},
            "averaging": 0.4,
        },
    },
}
if find_spec("opendp"):
    RUNS["hardened noise"] = LEARNING | {
        "rounds": 4,
        "privacy": {"clip": 0.5, "noise": "hardened"},
        "perturbation": {"name": "laplace"},
    }
STOPPED = {
    "liars, stopped and simulated again": 2,
    "resumed from a checkpoint": 3,
    "local steps, momentum and means": 4,
    "directions alone": 2,
}


def stop_and_resume(scenario, path, rounds):
    """Ends a run after some rounds and continues it; returns whether it had a checkpoint."""

    def progress(done, total):
        if done == rounds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, path, progress)
    had_one = (path / checkpoint.NAME).exists()
    fm.resume(path)
    return had_one


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The directory of each run; those that are stopped are compared with whole ones."""
    folder, paths, checkpoints = tmp_path_factory.mktemp("files"), {}, set()
    with pytest.MonkeyPatch.context() as often:
        often.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
        often.setattr(checkpoint, "SECONDS", 0.0)
        often.setattr(checkpoint, "SHARE", 1e9)
        for number, (name, tables) in enumerate(RUNS.items()):
            scenario, paths[name] = build_scenario(tables), folder / str(number)
            if name not in STOPPED:
                fm.run(scenario, paths[name])
                continue
            if stop_and_resume(scenario, paths[name], STOPPED[name]):
                checkpoints.add(name)
            whole = fm.run(scenario, folder / f"{number} whole").path
            assert fingerprint(paths[name]) == fingerprint(whole)
    assert checkpoints == {*STOPPED} - {"liars, stopped and simulated again"}, (
        "a plug-in from outside has none"
    )
    return paths


@pytest.fixture(scope="module")
def twins(runs):
    return {name: FileTwin(path) for name, path in runs.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RUNS)
def test_every_column_follows_from_the_files(name, kind, twins):
    assert differences(kind, *both_columns(twins[name], kind)) == []


@pytest.mark.parametrize("name", RUNS)
def test_the_runs_have_what_has_to_follow(name, twins, runs):
    assert contradictions(runs[name]) == set()
    rows = twins[name].log
    for kind, column in (("update", "loss"), ("update", "accuracy"), ("delivery", "true_error")):
        assert any(row[column] is not None for row in rows[kind]), f"{kind}.{column}"
    assert any(row["clipped"] for row in rows["gradient"])


@pytest.mark.parametrize("name", RUNS)
def test_a_kept_model_is_one_step_from_the_model_before_it(name, twins):
    twin = twins[name]
    for key in twin.keys:
        before, after = twin.parameters(key), twin.parameters(Key(key.round + 1, key.buyer))
        moved = before - twin.step(key)
        if twin.buyers[key.buyer].model.optimizer.name == "sgd":
            np.testing.assert_array_equal(after, moved)
        np.testing.assert_allclose(after, moved, rtol=0, atol=1e-12)
        assert (twin.delivered(key) is not None) == twin.rows("update", key)[0]["valid"]


def test_a_kept_mean_is_the_mean_of_the_kept_models(twins):
    twin = twins["local steps, momentum and means"]
    assert twin.kept(0, "buyer").average is None, "before the first round there is none"
    for key in [Key(key.round + 1, key.buyer) for key in twin.keys]:
        mean = MarketTwin.evaluated(twin, key)
        np.testing.assert_allclose(twin.evaluated(key), mean, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(twin.evaluated(key), twin.kept(*key).average)
    assert np.abs(twin.kept(7, "buyer").average - twin.kept(7, "buyer").parameters).max() > 1e-3
    assert twins["two buyers"].kept(1, "anna").average is None


@pytest.mark.parametrize("name", [name for name in RUNS if name != "hardened noise"])
def test_kept_models_are_those_that_the_seed_gives(name, twins, runs):
    drawn = LogTwin(build_scenario(RUNS[name]), runs[name])
    for key in drawn.keys:
        np.testing.assert_allclose(
            twins[name].parameters(key), drawn.parameters(key), rtol=1e-6, atol=1e-9
        )
    for owner in range(len(drawn.owners)):
        assert twins[name].records(owner) == drawn.records(owner).tolist()


@pytest.mark.skipif("hardened noise" not in RUNS, reason="the extra [privacy] is not installed")
def test_the_model_of_a_hardened_run_is_not_lost(twins, runs):
    drawn = LogTwin(build_scenario(RUNS["hardened noise"]), runs["hardened noise"])
    assert "true_error" in differences("delivery", *both_columns(drawn, "delivery")), (
        "no seed gives this noise"
    )
    run = twins["hardened noise"].run
    data = fm.load_data(run.scenario)
    seen = fm.buyer_model(run.scenario, data).evaluate(run.model().parameters, data)
    assert seen.accuracy == run.rounds["accuracy"][-1].as_py()


TAMPERED = [
    ("announcement", "budget"),
    ("bid", "value"),
    ("bid", "privacy_budget"),
    ("allocation", "privacy_loss"),
    ("allocation", "payment"),
    ("decision", "value"),
    ("gradient", "norm"),
    ("weight", "weight"),
    ("delivery", "error_bound"),
    ("delivery", "true_error"),
    ("delivery", "true_squared_bias"),
    ("payment", "amount"),
    ("update", "loss"),
    ("update", "accuracy"),
    ("round", "true_error"),
    ("round", "accuracy"),
    ("round", "ended"),
]


@pytest.mark.parametrize(("kind", "column"), TAMPERED)
def test_a_changed_number_contradicts_the_files(runs, tmp_path, kind, column):
    run = shutil.copytree(runs["resumed from a checkpoint"], tmp_path / "run")
    change(run / f"events/kind={kind}/part-00000.parquet", column, lambda value: value * 1.001)
    assert (kind, column) in contradictions(run)


def test_a_changed_ledger_contradicts_the_files(runs, tmp_path):
    run = shutil.copytree(runs["resumed from a checkpoint"], tmp_path / "run")
    change(run / "ledger.parquet", "earned", lambda value: value + 1.0)
    assert contradictions(run) == {("ledger", "earned")}


def test_other_records_or_another_model_contradict_the_log(runs, tmp_path):
    whole = runs["resumed from a checkpoint"]
    run = shutil.copytree(whole, tmp_path / "records")
    change(run / "owners.parquet", "records", lambda rows: [(row + 1) % 600 for row in rows], all)
    found = contradictions(run)
    assert {("gradient", "norm"), ("delivery", "true_error")} <= found
    assert ("update", "accuracy") not in found, "accuracy follows from the model"
    run = shutil.copytree(whole, tmp_path / "models")
    files = run / "models/buyer-0"
    shutil.copy(files / "rounds-00002.safetensors", files / "rounds-00006.safetensors")
    with pytest.raises(InputError, match=r"rounds-00006\.safetensors is damaged"):
        contradictions(run)


def change(path, column, changed, which=any):
    """Rewrites a Parquet file with another first value in a column, or with `all` other values.

    Its run has no hashes afterwards, which would tell without any twin.
    """
    run = next(folder for folder in path.parents if (folder / "run.json").exists())
    if "files" in fm.read_run(run):
        without_hashes(run)
    table = pq.read_table(path)
    values = table.column(column).to_pylist()
    first = next(i for i, value in enumerate(values) if value)
    values = [changed(v) if which is all or i == first else v for i, v in enumerate(values)]
    place = table.column_names.index(column)
    pq.write_table(
        table.set_column(place, column, pa.array(values, table.schema.field(column).type)), path
    )


def test_evaluated_rounds_follow_where_only_their_models_are_kept(tmp_path):
    tables = LEARNING | {"rounds": 7, "log": {"models": "evaluated"}}
    scenario = build_scenario(tables | {"model": {"name": "logistic", "evaluate_every": 3}})
    twin = FileTwin(fm.run(scenario, tmp_path / "run").path)
    assert [kept.rounds for kept in twin.run.models()] == [0, 2, 3, 5, 6, 7]
    for key in [Key(number, "buyer") for number in (2, 5, 6)]:
        for kind in ("gradient", "delivery", "update", "round"):
            both = (twin.rows(kind, key), list(getattr(twin, kind)(key)))
            logged, expected = ({n: [row[n] for row in t] for n in both[1][0]} for t in both)
            assert differences(kind, logged, expected) == [], kind
    with pytest.raises(InputError, match="does not have the model of 'buyer' after 1 rounds"):
        twin.parameters(Key(1, "buyer"))
