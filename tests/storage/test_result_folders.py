"""Directories for results where the file system, or somebody else, is in the way."""

import errno
import subprocess
import sys

import filelock
import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.storage.result_folders import LOCK, alone, claim, give_up, lock, remove_lock_file
from tests.support.paths import ROOT


def test_a_file_system_without_locks_is_no_reason_to_refuse(tmp_path, monkeypatch):
    def without(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", without)
    claim(tmp_path / "run", "run")
    lock(tmp_path / "run", "run").release()
    with alone(tmp_path / "lock", "somebody is here"), alone(tmp_path / "lock", "somebody is here"):
        pass
    assert not (tmp_path / "lock").exists()


def test_somebody_who_holds_a_lock_keeps_others_out_until_she_is_done(tmp_path):
    with alone(tmp_path / "lock", "somebody is here"):
        with (
            pytest.raises(InputError, match="somebody is here"),
            alone(tmp_path / "lock", "somebody is here"),
        ):
            pass
        assert (tmp_path / "lock").exists()
    with alone(tmp_path / "lock", "somebody is here"):
        pass


def test_the_lock_of_a_claim_becomes_the_lock_of_the_run(tmp_path):
    claim(tmp_path / "run", "run")
    mine = lock(tmp_path / "run", "run")
    with pytest.raises(InputError, match=r"another process is running a run in .*run"):
        lock(tmp_path / "run", "run")
    mine.release()
    lock(tmp_path / "run", "run").release()


def test_a_claim_that_is_given_up_leaves_an_empty_directory(tmp_path):
    claim(tmp_path / "run", "study")
    assert list((tmp_path / "run").iterdir())
    give_up(tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())
    give_up(tmp_path / "run")


def test_a_lock_ends_with_a_process_that_is_killed(tmp_path):
    code = (
        "import sys, pathlib\nfrom flmarket_sim.storage.result_folders import claim, lock\n"
        "folder = pathlib.Path(sys.argv[1])\nclaim(folder, 'run')\nheld = lock(folder, 'run')\n"
        "(folder / 'run.json').write_text('{}')\nprint('mine', flush=True)\nsys.stdin.readline()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=-1, stdout=-1, text=True
    )
    with holder:
        assert holder.stdout.readline() == "mine\n"
        with pytest.raises(InputError, match=f"is running a run in {tmp_path}"):
            lock(tmp_path, "run")
        with pytest.raises(InputError, match=f"{tmp_path} is not empty"):
            claim(tmp_path, "run")
        holder.kill()
    lock(tmp_path, "run").release()


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        lock(tmp_path / "nowhere", "run")
    with pytest.raises(InputError, match="is a file"):
        claim(tmp_path / "file", "run")
    with pytest.raises(InputError, match="cannot be made or read"):
        claim(tmp_path / "a\0b", "run")


def test_a_lock_whose_file_was_deleted_meanwhile_lets_nobody_in(tmp_path, monkeypatch):
    """Anna ends between Bob's opening of her lock file and his lock; Carla is quicker than Bob.

    The hard link keeps Anna's file alive, so that Bob's lock of it succeeds.
    """
    fcntl = pytest.importorskip("fcntl")
    claim(tmp_path / "run", "run")
    anna, flock, carla = lock(tmp_path / "run", "run"), fcntl.flock, []
    (tmp_path / "kept").hardlink_to(tmp_path / "run" / LOCK)

    def late(handle, operation):
        if operation & fcntl.LOCK_EX:
            monkeypatch.setattr(fcntl, "flock", flock)
            remove_lock_file(tmp_path / "run" / LOCK)
            anna.release()
            carla.append(lock(tmp_path / "run", "run"))
        return flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(InputError, match="another process is running a run"):
        lock(tmp_path / "run", "run")
    assert carla[0].is_locked
    carla[0].release()
    lock(tmp_path / "run", "run").release()
