"""A command without a directory keeps results until it has printed them."""

import pytest

from flmarket_sim.errors import FlmarketError
from flmarket_sim.experiments.engine import results_of
from flmarket_sim.experiments.scratch_store import scratch_store
from flmarket_sim.experiments.store import FileStore
from tests.experiments.test_engine import Square, square


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def squares(*numbers):
    return [Square(float(number)) for number in numbers]


def stopped(tasks, lines):
    """Does the first task and is interrupted."""
    with scratch_store("squares", tasks, lines.append) as store:
        results_of(tasks[:1], square, store=store)
        raise KeyboardInterrupt


def test_no_file_is_there_before_the_first_result_and_after_the_last_line(folder):
    lines = []
    with scratch_store("squares", squares(1, 2), lines.append) as store:
        assert list(folder.iterdir()) == []
        results_of(squares(1, 2), square, store=store)
        assert [path.name for path in folder.glob("runs/squares-*/*.jsonl")] == ["tasks.jsonl"]
    assert list(folder.iterdir()) == [] and lines == []


def test_an_interrupted_command_says_where_its_results_are_and_continues_there(folder):
    lines = []
    with pytest.raises(FlmarketError, match=r"in runs/squares-.*same command continues"):
        stopped(squares(1, 2), lines)
    with scratch_store("squares", squares(1, 2), lines.append) as store:
        assert Square(1.0).key in store and Square(2.0).key not in store
    assert len(lines) == 1 and "1 of 2 tasks are done" in lines[0]
    with scratch_store("squares", squares(1, 2), lines.append) as store:
        assert Square(1.0).key not in store, "what was printed is not kept"


def test_other_tasks_do_not_continue(folder):
    with pytest.raises(FlmarketError):
        stopped(squares(1, 2), [])
    with scratch_store("squares", squares(1, 3), lambda line: pytest.fail(line)) as store:
        assert Square(1.0).key not in store


def test_where_nothing_can_be_written_the_command_works_and_says_that_nothing_is_kept(folder):
    (folder / "runs").write_text("a file in the way")
    lines = []
    with scratch_store("squares", squares(1, 2), lines.append) as store:
        assert len(results_of(squares(1, 2), square, store=store)) == 2
    assert len(lines) == 1 and "results are not kept for a later call" in lines[0]
    assert (folder / "runs").read_text() == "a file in the way"


def test_a_second_command_leaves_the_file_of_the_first_alone(folder):
    with pytest.raises(FlmarketError):
        stopped(squares(1, 2), [])
    (path,) = folder.glob("runs/squares-*/tasks.jsonl")
    lines = []
    with FileStore(path):
        with scratch_store("squares", squares(1, 2), lines.append) as store:
            results_of(squares(1, 2), square, store=store)
        assert path.exists()
    assert len(lines) == 1 and "another process" in lines[0]
