"""Which models a run keeps, and that stops and damage lose none of them."""

import shutil

import numpy as np
import pytest

import flmarket_sim as fm
from benchmarks.kills import MARKETS, fingerprint
from flmarket_sim.errors import FlmarketError, InputError, ScenarioError
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.scenario.scenario_file import build_scenario, parse_scenario
from flmarket_sim.storage import atomic_files
from tests.support.command_line import flmarket
from tests.support.sealed_json import write_sealed

SMALL = {
    "rounds": 7,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50},
    "owners": {"count": 24},
    "market": {"bidders": 6},
    "model": {"name": "logistic", "evaluate_every": 3},
}


def market(models, **tables):
    return build_scenario(SMALL | {"log": {"models": models}} | tables)


@pytest.fixture
def often(monkeypatch):
    """Journal and checkpoints as often as can be."""
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


def broken_off(scenario, out, rounds):
    def progress(done, total):
        if done == rounds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, out, progress)


@pytest.mark.parametrize(
    ("models", "kept"),
    [("never", []), ("evaluated", [0, 2, 3, 5, 6, 7]), ("every", list(range(8)))],
)
def test_a_run_keeps_the_models_that_its_scenario_wants(tmp_path, models, kept):
    run = fm.run(market(models), tmp_path / "run")
    assert [model.rounds for model in run.models()] == kept
    files = [path.name for path in sorted(run.path.glob("models/**/*.*"))]
    assert files == [f"rounds-{rounds:05d}.safetensors" for rounds in kept]


def test_without_the_table_nothing_is_kept_and_the_hash_of_a_scenario_stays(tmp_path):
    plain = build_scenario(SMALL)
    run = fm.run(plain, tmp_path / "run")
    assert not (run.path / "models").exists() and "models" not in run.info
    assert market("never").digest() == plain.digest() != market("every").digest()
    assert parse_scenario("").digest() == parse_scenario("[log]\nrecords = true").digest()
    with pytest.raises(ScenarioError, match="must be one of never, evaluated, every"):
        parse_scenario('[log]\nmodels = "always"')


def test_keeping_models_changes_no_event(tmp_path):
    logs = [fm.run(market(models), tmp_path / models).info["log"] for models in ("never", "every")]
    assert logs[0] == logs[1]


def test_a_market_without_learning_or_without_files_keeps_no_model(tmp_path):
    run = fm.run(market("every", model={"name": "none"}), tmp_path / "run")
    assert not (run.path / "models").exists() and "records" not in run.owners.column_names
    whole = fm.run(market("every"), tmp_path / "whole")
    assert rounds_only(market("every")) == whole.rounds.to_pylist()


def test_owners_name_their_records_unless_the_scenario_says_no(tmp_path):
    owners = fm.run(market("never"), tmp_path / "run").owners
    rows = owners.column("records").to_pylist()
    assert [len(records) for records in rows] == owners.column("data_size").to_pylist()
    assert sorted(row for records in rows for row in records) == list(range(600))
    without = fm.run(market("never", log={"records": False}), tmp_path / "without").owners
    assert without.column_names == [name for name in owners.column_names if name != "records"]


@pytest.mark.parametrize("name", ["one buyer", "several buyers", "slow money"])
def test_stopped_runs_end_with_the_models_of_a_whole_run(tmp_path, often, name):
    scenario = build_scenario(MARKETS[name] | {"rounds": 3, "log": {"models": "every"}})
    whole = fm.run(scenario, tmp_path / "whole").path
    for rounds in range(1, 3 * len(scenario.resolved_buyers()) + 1):
        out = tmp_path / f"after {rounds}"
        broken_off(scenario, out, rounds)
        (out / "models/buyer-0/.rounds-00001.safetensors.tmp").write_bytes(b"cut off by a kill")
        fm.resume(out)
        assert fingerprint(out) == fingerprint(whole)
    assert len(list(whole.glob("models/*/*"))) == 4 * len(scenario.resolved_buyers())


def test_an_unfinished_run_shows_the_models_that_it_has(tmp_path, often):
    broken_off(market("every"), tmp_path / "run", 4)
    info = fm.read_run(tmp_path / "run")
    assert list(info["models"]["buyer"]) == ["0", "1", "2", "3", "4"]
    del info["models"]  # as in a run that is going on, or was killed
    write_sealed(tmp_path / "run/run.json", info | {"outcome": "running"})
    assert [model.rounds for model in fm.read_models(tmp_path / "run")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("saved", [True, False])
@pytest.mark.parametrize("damage", ["lost", "cut"])
def test_a_damaged_model_of_a_stopped_run_is_named_and_written_again(
    tmp_path, often, saved, damage
):
    whole = fm.run(market("every"), tmp_path / "whole").path
    out = tmp_path / "run"
    broken_off(market("every"), out, 4)
    if not saved:
        (out / checkpoint.NAME).unlink()
    path = out / "models/buyer-0/rounds-00002.safetensors"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.unlink()
    if saved or damage == "cut":
        with pytest.raises(FlmarketError, match=r"rounds-00002\.safetensors"):
            fm.resume(out)
    path.unlink(missing_ok=True)
    (out / checkpoint.NAME).unlink(missing_ok=True)
    fm.resume(out)
    assert fingerprint(out) == fingerprint(whole)


def test_a_finished_run_that_has_lost_a_model_is_not_called_whole(tmp_path):
    run = fm.run(market("evaluated"), tmp_path / "run")
    assert fm.resume(run.path).info == run.info
    (run.path / "models/buyer-0/rounds-00003.safetensors").unlink()
    with pytest.raises(InputError, match=r"rounds-00003\.safetensors is lost"):
        fm.resume(run.path)


def test_a_full_disk_is_a_clear_message_and_the_run_goes_on_later(tmp_path, monkeypatch, often):
    whole = fm.run(market("every"), tmp_path / "whole").path
    sync = atomic_files.sync

    def full(path):
        if path.name == ".rounds-00003.safetensors.tmp":
            raise OSError(28, "No space left on device")
        sync(path)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files, "sync", full)
        with pytest.raises(FlmarketError, match=r"the disk is full: .*rounds-00003"):
            fm.run(market("every"), tmp_path / "run")
    assert not (tmp_path / "run/models/buyer-0/rounds-00003.safetensors").exists()
    fm.resume(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole)


def test_the_command_line_says_where_models_are(tmp_path):
    settings = ["--set", "rounds=2", "--set", "data.name=synthetic", "--set", "log.models=every"]
    shown = flmarket("run", "quickstart", *settings, "--out", tmp_path / "run")
    assert "3 models in" in shown.stdout.replace("\n", " ")
    model = fm.read_model(tmp_path / "run")
    assert model.rounds == 2 and np.isfinite(model.parameters).all()


def test_a_torch_module_is_kept_too(tmp_path):
    model = {"name": "tests.support.forgetful:Forgetful", "learning_rate": 0.1}
    run = fm.run(market("every", model=model, rounds=2), tmp_path / "run")
    data = fm.load_data(run.scenario)
    teacher = fm.buyer_model(run.scenario, data)
    np.testing.assert_array_equal(run.model(rounds=0).parameters, teacher.initial())
    seen = teacher.evaluate(run.model().parameters, data)
    assert seen.accuracy == pytest.approx(run.rounds["accuracy"][-1].as_py())
    shutil.rmtree(run.path)
