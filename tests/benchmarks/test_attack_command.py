"""The command of the attacks: options, what it prints, and the tests beside busy loops."""

import json
from contextlib import contextmanager

import pytest

from benchmarks.attack import load
from benchmarks.attack.__main__ import ATTACKS, parsed
from benchmarks.attack.outcome import Failure, Outcome


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_has_trials_a_seed_and_workers(name):
    options = parsed([name, "--count", "5", "--seed", "7", "--workers", "1", "--only", "3"])
    assert (options.count, options.seed, options.workers, options.only) == (5, 7, 1, 3)
    assert parsed([name]).count == ATTACKS[name][0] and not parsed([name]).json


def test_failures_that_are_alike_are_told_once_with_the_command_that_repeats_them():
    alike = [Failure(index, "SILENT", f"in file {index}", f"--only {index}") for index in (4, 9)]
    outcome = Outcome("damage", 10, 2.0, [{"reader": "sql", "bad": 2}], alike)
    text = outcome.as_text()
    assert "2 x SILENT" in text and "again: --only 4" in text and "--only 9" not in text
    assert text.endswith("damage: 10 trials in 2 s, 2 BAD, of 1 sorts.")
    assert len(json.loads(outcome.as_json())["failures"]) == 2
    assert Outcome("damage", 10, 2.0).verdict() == "damage: 10 trials in 2 s, nothing bad."


@pytest.mark.processes
def test_a_test_that_fails_beside_busy_loops_is_named_and_the_loops_end(tmp_path, monkeypatch):
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): assert 0\n")
    started, busy = [], load.busy

    @contextmanager
    def noted(loops):
        with busy(loops) as processes:
            started.extend(processes)
            yield processes

    monkeypatch.setattr(load, "busy", noted)
    outcome = load.attack([str(tmp_path)], loops=2, times=1, progress=lambda *_: None)
    assert len(outcome.failures) == 1 and "test_b" in outcome.failures[0].sort
    assert len(started) == 2 and all(process.poll() is not None for process in started)
