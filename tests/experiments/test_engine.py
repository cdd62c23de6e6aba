"""The engine does every task once, whoever does it, and continues after a stop."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments.engine import Failure, perform, results_of
from flmarket_sim.experiments.store import FileStore, MemoryStore, read_results
from flmarket_sim.experiments.task import environment, task_key
from flmarket_sim.experiments.worker_processes import (
    GrowingCrew,
    Processes,
    ThisProcess,
    local_crew,
)
from flmarket_sim.market.named_files import file_contents


@dataclass(frozen=True)
class Square:
    """The square of a number; `notes` is a file in which every call leaves a line."""

    number: float
    notes: Path | None = None

    @property
    def key(self) -> str:
        return task_key("square", str(self.number))

    @property
    def label(self) -> str:
        return f"square of {self.number}"


def square(task: Square) -> dict:
    if task.notes is not None:
        with task.notes.open("a") as file:
            file.write(f"{task.number}\n")
    if task.number == 13:
        raise ValueError("thirteen")
    if task.number == 14:
        raise InputError("fourteen is not allowed")
    return {"square": task.number**2 / 3, "bad": float("nan"), "open": float("inf")}


def tasks(count, **more):
    return [Square(float(number), **more) for number in range(count)]


@pytest.mark.parametrize("crew", [None, ThisProcess(), Processes(2)], ids=str)
def test_results_come_in_the_order_of_the_tasks_whoever_does_them(crew):
    results = results_of(tasks(5), square, crew=crew)
    assert [result["square"] for result in results] == [n * n / 3 for n in range(5)]


def test_a_task_with_a_stored_result_is_not_done_again(tmp_path):
    notes = tmp_path / "notes"
    with FileStore(tmp_path / "tasks.jsonl") as store:
        first = results_of(tasks(3, notes=notes), square, store=store)
    with FileStore(tmp_path / "tasks.jsonl") as store:
        second = results_of(tasks(5, notes=notes), square, store=store)
    assert notes.read_text().split() == ["0.0", "1.0", "2.0", "3.0", "4.0"]
    assert json.dumps(first) == json.dumps(second[:3])


def test_tasks_with_one_key_are_done_once(tmp_path):
    notes = tmp_path / "notes"
    twice = [Square(2.0, notes), Square(2.0, notes)]
    assert len(results_of(twice, square)) == 2
    assert notes.read_text() == "2.0\n"


def test_the_first_failure_ends_an_experiment_and_what_was_done_stays(tmp_path):
    path = tmp_path / "tasks.jsonl"
    work = [Square(1.0), Square(13.0), Square(2.0)]
    with (
        FileStore(path) as store,
        pytest.raises(FlmarketError, match=r"square of 13.0: ValueError: thirteen"),
    ):
        results_of(work, square, store=store)
    assert list(read_results(path)) == [Square(1.0).key]


def test_a_failure_is_a_result_to_those_who_ask_task_by_task_and_is_never_stored():
    store = MemoryStore()
    work = [Square(14.0), Square(2.0)]
    results = dict(perform(work, square, store=store))
    assert results[work[0]] == Failure("fourteen is not allowed", wrong_input=True)
    assert list(store) == [work[1].key]


@pytest.mark.processes
def test_a_process_that_dies_is_a_failure_of_its_task():
    results = dict(perform([Square(-1.0), Square(2.0)], killed_by_negatives, crew=Processes(2)))
    assert "ended by signal 9" in results[Square(-1.0)].message
    assert results[Square(2.0)] == 2.0


def killed_by_negatives(task: Square) -> float:
    if task.number < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return task.number


def test_progress_counts_what_an_earlier_call_has_done():
    store, calls = MemoryStore(), []
    results_of(tasks(2), square, store=store)
    results_of(tasks(4), square, store=store, progress=lambda *counts: calls.append(counts))
    assert calls == [(2, 4), (3, 4), (4, 4)]


def test_a_line_that_a_kill_has_cut_off_is_dropped_and_its_task_done_again(tmp_path):
    path = tmp_path / "tasks.jsonl"
    with FileStore(path) as store:
        results_of(tasks(3), square, store=store)
    whole = path.read_bytes()
    for end in range(len(whole) - 40, len(whole)):
        path.write_bytes(whole[:end])
        with FileStore(path) as store:
            assert Square(2.0).key not in store and Square(1.0).key in store
            results_of(tasks(3), square, store=store)
        assert path.read_bytes() == whole


def test_every_flipped_bit_is_noticed_or_cuts_off_the_end(tmp_path):
    path = tmp_path / "tasks.jsonl"
    with FileStore(path) as store:
        store.add("a", {"payment": 1.25})
        store.add("b", [1, 2])
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            hurt = bytearray(whole)
            hurt[place] ^= 1 << bit
            path.write_bytes(hurt)
            with suppress(InputError):
                results = read_results(path)
                assert results == {"a": {"payment": 1.25}}, f"bit {bit} of byte {place}"


def test_two_processes_do_not_share_a_store(tmp_path):
    path = tmp_path / "tasks.jsonl"
    with FileStore(path), pytest.raises(InputError, match="another process keeps its results"):
        FileStore(path).__enter__()


def test_a_result_that_is_interrupted_while_the_disk_is_slow_stays(tmp_path, monkeypatch):
    path = tmp_path / "tasks.jsonl"

    def interrupted(handle):
        raise KeyboardInterrupt

    with FileStore(path) as store:
        monkeypatch.setattr("flmarket_sim.experiments.store.SYNC_SECONDS", -1.0)
        with monkeypatch.context() as slow:
            slow.setattr("os.fsync", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.add("key", 1)
        assert store["key"] == 1
    assert read_results(path) == {"key": 1}


def test_a_store_without_results_leaves_no_file(tmp_path):
    with FileStore(tmp_path / "tasks.jsonl"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_with_what_to_do(tmp_path):
    with FileStore(tmp_path / "tasks.jsonl") as store:
        store._file.close()
        store._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115 - closed by the store
        with pytest.raises(FlmarketError, match=r"disk is full.*continues from there"):
            store.add("key", 1)
        store._file.close()
        store._file = (tmp_path / "tasks.jsonl").open("ab")


def test_weights_and_plug_ins_count_by_their_content(tmp_path, monkeypatch):
    weights, module, file = (
        tmp_path / name for name in ("w.safetensors", "plug_in_of_test.py", "in_a_file.py")
    )
    weights.write_bytes(b"1")
    module.write_text("class X: ...\n")
    file.write_text("def f(x, y): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    data = {
        "auctions": [
            f"seq-price@{weights}",
            "a label=plug_in_of_test:X[price=2]",
            "all-in[value='in_a_file.py:f']",
            "all-in",
        ],
        "n": 3,
    }
    before = file_contents(data)
    assert set(before) == {str(weights), "plug_in_of_test:X", "in_a_file.py:f"}
    weights.write_bytes(b"2")
    module.write_text("class X: y = 1\n")
    file.write_text("def f(x, y): return 1\n")
    after = file_contents(data)
    assert all(before[name] != after[name] for name in before)


def test_a_key_depends_on_versions_and_on_our_code(monkeypatch):
    before = task_key("x")
    assert before == task_key("x") != task_key("y")
    facts = dict(environment())
    for name in facts:
        monkeypatch.setattr(
            "flmarket_sim.experiments.task.environment", lambda name=name: facts | {name: "other"}
        )
        assert task_key("x") != before, name


def test_a_growing_crew_starts_processes_only_when_the_work_takes_long(tmp_path):
    processes = {}
    for patience in (60.0, 0.0):
        results = results_of(tasks(4), process_id, crew=GrowingCrew(2, patience))
        processes[patience] = {process == os.getpid() for process in results}
    assert processes[60.0] == {True}
    assert processes[0.0] == {False}


def process_id(task: Square) -> int:
    return os.getpid()


def test_one_worker_is_this_process():
    assert isinstance(local_crew(1), ThisProcess)
    assert local_crew(3) == Processes(3)


def test_an_answer_that_json_cannot_express_is_received_before_it_is_stored():
    store, received = MemoryStore(), []

    def receive(task, answer):
        received.append(task.number)
        return Failure("odd") if task.number % 2 else answer.decode()

    results = dict(perform(tasks(3), as_bytes, store=store, receive=receive))
    assert list(results.values()) == ["0.0", Failure("odd"), "2.0"] and received == [0, 1, 2]
    assert set(store) == {Square(0.0).key, Square(2.0).key}


def as_bytes(task: Square) -> bytes:
    return str(task.number).encode()


def test_a_store_is_not_opened_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("one line that is no store")
    os.symlink(tmp_path / "precious", tmp_path / "tasks.jsonl")
    with pytest.raises(FlmarketError, match="writing failed"), FileStore(tmp_path / "tasks.jsonl"):
        pass
    assert (tmp_path / "precious").read_text() == "one line that is no store"


def test_an_empty_store_is_deleted_while_its_lock_is_held(tmp_path, monkeypatch):
    path, deleted = tmp_path / "tasks.jsonl", FileStore.delete

    def delete(store):
        with pytest.raises(InputError, match="another process"), FileStore(path):
            pass
        deleted(store)

    monkeypatch.setattr(FileStore, "delete", delete)
    with FileStore(path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_stays(tmp_path):
    (tmp_path / "tasks.jsonl").write_text("not a result\n")
    with pytest.raises(InputError, match="line 1"), FileStore(tmp_path / "tasks.jsonl"):
        pass
    assert (tmp_path / "tasks.jsonl").read_text() == "not a result\n"


def test_a_disk_that_fails_at_the_end_of_a_store_is_named(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with (
        pytest.raises(FlmarketError, match=r"tasks\.jsonl"),
        FileStore(tmp_path / "tasks.jsonl") as store,
    ):
        store.add("a", 1)
    with pytest.raises(KeyError), FileStore(tmp_path / "tasks.jsonl") as store:
        store["b"]  # the error that ends the block is not hidden
    assert store["a"] == 1
    monkeypatch.setattr(Path, "unlink", broken)
    with pytest.raises(FlmarketError, match=r"tasks\.jsonl"):
        store.delete()
