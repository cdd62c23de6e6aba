"""Files that appear complete, also on systems that treat open files and directories differently."""

import errno
import os

import pytest

from flmarket_sim.storage import atomic_files
from flmarket_sim.storage.atomic_files import sync, write_text


def test_a_file_has_the_same_bytes_on_every_system(tmp_path):
    write_text(tmp_path / "a.txt", "one\ntwo\n")
    assert (tmp_path / "a.txt").read_bytes() == b"one\ntwo\n"


def test_a_directory_that_cannot_be_opened_is_not_synchronised(tmp_path, monkeypatch):
    def without_directories(path, flags, opened=os.open):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags)

    monkeypatch.setattr(os, "open", without_directories)
    write_text(tmp_path / "a.txt", "one")
    sync(tmp_path)
    monkeypatch.setattr(os.path, "isdir", lambda path: True)
    with pytest.raises(PermissionError):
        sync(tmp_path / "a.txt")


def test_a_reader_of_the_old_file_is_waited_for_on_windows(tmp_path, monkeypatch):
    attempts = []

    class OpenElsewhere:
        def replace(self, target):
            attempts.append(target)
            if len(attempts) < 3:
                raise PermissionError(errno.EACCES, "The file is being used")

    monkeypatch.setattr(atomic_files.os, "name", "nt")
    atomic_files.replace(OpenElsewhere(), tmp_path)
    assert len(attempts) == 3
    attempts[:] = []
    monkeypatch.setattr(atomic_files, "WAITS", (0.0,))
    with pytest.raises(PermissionError):
        atomic_files.replace(OpenElsewhere(), tmp_path)
