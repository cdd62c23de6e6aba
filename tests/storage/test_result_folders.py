"""Directories for results where the file system, or somebody else, is in the way."""

import errno
import fcntl

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.storage.result_folders import alone, claim, lock


def test_a_file_system_without_locks_is_no_reason_to_refuse(tmp_path, monkeypatch):
    def without(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    claim(tmp_path / "run", "run")
    assert lock(tmp_path / "run", "run") >= 0
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


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        lock(tmp_path / "nowhere", "run")
    with pytest.raises(InputError, match="is a file"):
        claim(tmp_path / "file", "run")
    with pytest.raises(InputError, match="cannot be made or read"):
        claim(tmp_path / "a\0b", "run")
