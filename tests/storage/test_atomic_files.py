"""Files that appear complete, also on systems that treat open files and directories differently."""

import errno
import os

import pytest

from flmarket_sim.storage import atomic_files
from flmarket_sim.storage.atomic_files import sync, write_text
from flmarket_sim.workbench.processes import start


def test_a_file_has_the_same_bytes_on_every_system(tmp_path):
    write_text(tmp_path / "a.txt", "one\ntwo\n")
    assert (tmp_path / "a.txt").read_bytes() == b"one\ntwo\n"


def test_a_directory_that_cannot_be_opened_is_not_synchronised(tmp_path, monkeypatch):
    def without_directories(path, *settings, opened=os.open):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *settings)

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


def test_a_link_under_the_hidden_name_is_not_written_through(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    os.symlink(tmp_path / "precious", tmp_path / ".a.txt.tmp")
    write_text(tmp_path / "a.txt", "one")
    assert (tmp_path / "precious").read_text() == "keep me"
    assert (tmp_path / "a.txt").read_text() == "one" and not (tmp_path / "a.txt").is_symlink()


def test_a_link_that_appears_after_the_old_one_was_removed_is_refused(tmp_path, monkeypatch):
    (tmp_path / "precious").write_text("keep me")
    fresh, unlink = tmp_path / ".a.txt.tmp", type(tmp_path).unlink

    def unlink_and_lose_the_race(path, missing_ok=False):
        unlink(path, missing_ok=missing_ok)
        os.symlink(tmp_path / "precious", path)

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "unlink", unlink_and_lose_the_race)
        with pytest.raises(FileExistsError):
            atomic_files.make_empty(fresh)
    assert (tmp_path / "precious").read_text() == "keep me"


def test_what_a_kill_has_left_is_replaced(tmp_path):
    (tmp_path / ".a.txt.tmp").write_text("half of something longer")
    write_text(tmp_path / "a.txt", "one")
    assert (tmp_path / "a.txt").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_of_a_link_to_a_folder_only_the_link_is_removed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    os.symlink(tmp_path / "precious", tmp_path / "link")
    atomic_files.remove_folder(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink() and (tmp_path / "precious" / "file").exists()
    atomic_files.remove_folder(tmp_path / "link")


def test_a_log_of_a_process_is_written_through_no_link(tmp_path):
    (tmp_path / "precious").write_text("keep me")
    os.symlink(tmp_path / "precious", tmp_path / "log")
    with pytest.raises(OSError, match="symbolic link"):
        start(["--version"], tmp_path / "log")
    assert (tmp_path / "precious").read_text() == "keep me"
    assert start(["--version"], tmp_path / "own").wait() == 0
    assert (tmp_path / "own").read_text().startswith("flmarket ")
