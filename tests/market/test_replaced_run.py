"""--force replaces a run that failed or was stopped, and deletes nothing else."""

import json
import shutil

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.market.replaced_run import make_room
from flmarket_sim.storage.result_folders import LOCK, alone
from tests.support.command_line import flmarket

SETTINGS = {"rounds": 3, "model": "none"}


def stopped(folder, error=KeyboardInterrupt):
    def stop(done, total):
        raise error("stopped here")

    with pytest.raises(error):
        fm.run("quickstart", folder, stop, **SETTINGS)
    return folder


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("run.json", LOCK)
    }


@pytest.mark.parametrize("error", [KeyboardInterrupt, FlmarketError])
def test_an_unfinished_run_is_replaced_by_a_whole_one(tmp_path, error):
    old = stopped(tmp_path / "old", error)
    with pytest.raises(InputError, match=r"not finished.*resume.*`force=True`.*replaces it"):
        fm.run("quickstart", old, seed=5, **SETTINGS)
    replaced = fm.run("quickstart", old, seed=5, force=True, **SETTINGS)
    fresh = fm.run("quickstart", tmp_path / "fresh", seed=5, **SETTINGS)
    assert replaced.info["outcome"] == "finished"
    assert files(replaced.path) == files(fresh.path)


def test_a_run_with_models_is_replaced_and_force_needs_no_old_run(tmp_path):
    def stop(done, total):
        raise KeyboardInterrupt

    settings = {"rounds": 2, "log": {"models": "every"}}
    with pytest.raises(KeyboardInterrupt):
        fm.run("quickstart", tmp_path / "run", stop, **settings)
    assert list(tmp_path.glob("run/models/*/*"))
    assert fm.run("quickstart", tmp_path / "run", force=True, **SETTINGS).info["seed"] == 1
    assert fm.run("quickstart", tmp_path / "new", force=True, **SETTINGS).rounds


def test_a_finished_run_is_never_replaced(tmp_path):
    run = fm.run("quickstart", tmp_path / "run", **SETTINGS)
    before = files(run.path)
    with pytest.raises(InputError, match="holds a finished run; `force=True` replaces failed"):
        fm.run("quickstart", run.path, force=True, **SETTINGS)
    assert files(run.path) == before


@pytest.mark.parametrize("name", ["notes.txt", "events/notes.txt", "models/mine.pt", ".git"])
def test_files_of_other_people_are_never_deleted(tmp_path, name):
    run = stopped(tmp_path / "run")
    (run / name).parent.mkdir(exist_ok=True)
    (run / name).write_text("mine")
    before = files(run)
    with pytest.raises(
        InputError, match="is not a file of a run; `force=True` deletes nothing else"
    ):
        make_room(run)
    assert files(run) == before


def test_a_link_is_not_followed(tmp_path):
    run, other = stopped(tmp_path / "run"), tmp_path / "other"
    other.mkdir()
    (other / "part-00000.parquet").write_text("mine")
    (run / "models").mkdir()
    (run / "models" / "buyer-9").symlink_to(other)
    with pytest.raises(InputError, match="not a file of a run"):
        make_room(run)
    assert (other / "part-00000.parquet").exists()


def test_folders_that_hold_no_run_and_runs_at_work_are_refused(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "run.json").write_text(json.dumps({"outcome": "failed"}))
    with pytest.raises(InputError, match="does not hold a run that failed"):
        make_room(tmp_path / "some")
    run = stopped(tmp_path / "run")
    with alone(run / LOCK, "-"), pytest.raises(InputError, match="another process"):
        make_room(run)


def test_a_kill_in_between_leaves_a_run_that_force_still_knows(tmp_path, monkeypatch):
    run = stopped(tmp_path / "run")
    deleted = []

    def dies(self, missing_ok=False):
        deleted.append(self.name)
        if len(deleted) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pathlib.Path.unlink", dies)
        with pytest.raises(KeyboardInterrupt):
            make_room(run)
    assert "run.json" not in deleted
    assert fm.run("quickstart", run, force=True, **SETTINGS).info["outcome"] == "finished"


def test_the_option_of_the_command_line(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(stopped(tmp_path / "old"), run)  # this process may still hold the lock
    command = ("run", "quickstart", "--set", "model.name=none", "--set", "rounds=2", "--out", run)
    refused = flmarket(*command)
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert flmarket(*command, "--force").returncode == 0
    assert len(fm.Run(run).rounds) == 2
