"""The attack by faults: it finds work that is not safe, and leaves safe work in peace."""

import pytest

from benchmarks.attack import faults
from benchmarks.attack.faults import FaultTrials, Work
from benchmarks.attack.faulty_disk import (
    AFTER,
    BEFORE,
    BROKEN,
    FAULTS,
    FULL,
    TORN,
    FaultyDisk,
    installed,
)
from flmarket_sim.errors import FlmarketError
from flmarket_sim.storage.atomic_files import disk_error, write_text

TEXT = "what is to be kept"


def started(write):
    """Work that writes one file with `write`, unless it is there."""

    def start(folder):
        try:
            folder.mkdir(exist_ok=True)
            if not (folder / "a.txt").exists():
                write(folder / "a.txt")
        except OSError as error:
            raise disk_error(folder, error) from error

    return start


def kept(folder):
    return (folder / "a.txt").read_text()


SAFE = Work(started(lambda path: write_text(path, TEXT)), kept)
UNSAFE = Work(started(lambda path: path.write_text(TEXT)), kept)
CRUDE = Work(lambda folder: (folder.mkdir(exist_ok=True), write_text(folder / "a.txt", TEXT)), kept)
SILENT = Work(started(lambda path: write_text(path, TEXT)), kept, lambda folder: refuse())


def refuse():
    raise FlmarketError("no")


def wrong(monkeypatch, tmp_path, work):
    """What is wrong after every fault at every operation of a work."""
    monkeypatch.setitem(faults.WORKS, "planted", work)
    trials = FaultTrials(tmp_path, 0, ("planted",))
    operations, whole = trials.undisturbed("planted")
    told = [
        trials.trial("planted", fault, at, whole)
        for fault in FAULTS
        for at in range(1, operations + 1)
    ]
    return operations, {one.fault: one.wrong for one in told if one.wrong}


def test_files_that_appear_complete_survive_every_fault(monkeypatch, tmp_path):
    operations, found = wrong(monkeypatch, tmp_path, SAFE)
    assert operations >= 6 and not found


def test_a_file_that_is_written_in_place_is_found_torn(monkeypatch, tmp_path):
    _, found = wrong(monkeypatch, tmp_path, UNSAFE)
    assert found[TORN] == "the result differs from that of undisturbed work"


def test_an_error_that_nobody_explains_is_a_crash(monkeypatch, tmp_path):
    _, found = wrong(monkeypatch, tmp_path, CRUDE)
    assert set(found) == {FULL, BROKEN} and all(text.startswith("crash") for text in found.values())


def test_a_reader_that_refuses_without_a_name_is_found(monkeypatch, tmp_path):
    _, found = wrong(monkeypatch, tmp_path, SILENT)
    assert set(found.values()) == {"reading refuses without a name: no"}


@pytest.mark.parametrize(("fault", "left"), [(BEFORE, ""), (AFTER, TEXT), (TORN, TEXT[:9])])
def test_a_kill_leaves_what_was_written_so_far(fault, left, tmp_path):
    folder = tmp_path / "f"
    folder.mkdir()
    disk = FaultyDisk(folder, 2, fault, tmp_path / "left")  # the first operation opens the file
    with installed(disk), pytest.raises(faults.Killed):
        (folder / "a.txt").write_text(TEXT)
    assert (tmp_path / "left/a.txt").read_text() == left and disk.what == "write a.txt"


@pytest.mark.parametrize("name", ["study", "sweep"])
def test_a_broken_disk_is_named_at_every_operation(tmp_path, name):
    trials = FaultTrials(tmp_path, 0)
    operations, whole = trials.undisturbed(name)
    told = [trials.trial(name, BROKEN, at, whole) for at in range(1, operations + 1)]
    assert operations > 10 and [one for one in told if one.wrong] == []
