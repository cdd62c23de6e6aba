"""The share of mutants that tests notice, as `make mutants` counts it."""

import json

import pytest

from upkeep.mutants import read, sample, share_killed, table

MADE = {"auctions/a": ["a1", "a2", "a3"], "privacy/b": ["b1", "b2"]}


def test_a_sample_has_every_mutant_at_most_once_and_depends_on_its_seed_alone():
    everything = sample(MADE, 10, seed=1)
    assert sorted(everything) == ["a1", "a2", "a3", "b1", "b2"]
    assert sample(MADE, 3, seed=1) == everything[:3] == sample(dict(reversed(MADE.items())), 3, 1)
    assert any(sample(MADE, 10, seed) != everything for seed in range(2, 9))


def test_the_last_verdict_on_a_mutant_counts_and_a_signal_is_a_kill(tmp_path):
    file = tmp_path / "verdicts.jsonl"
    assert read(file) == {}
    lines = [["a1", 0], ["a2", 1], ["a3", 33], ["a1", -24], ["b1", 0]]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read(file)
    assert found == {"a1": "killed", "a2": "killed", "a3": "untested", "b1": "survived"}
    rows = table(MADE, found).splitlines()
    assert rows[2:] == [
        "| auctions/a | 3 | 2 | 0 | 1 | 0 |",
        "| privacy/b | 2 | 0 | 1 | 0 | 1 |",
        "| all | 5 | 2 | 1 | 1 | 1 |",
    ]


@pytest.mark.parametrize(("killed", "run", "low", "high"), [(9, 10, 59.6, 98.2), (0, 5, 0, 43.4)])
def test_the_share_comes_with_wilsons_interval(killed, run, low, high):
    verdicts = {str(n): "killed" if n < killed else "survived" for n in range(run)}
    assert share_killed(verdicts) == (
        f"{killed} of {run} mutants were killed: {killed / run:.1%}. If they are a random sample, "
        f"it is [{low:.1f}%, {high:.1f}%] of all (95 %, Wilson)."
    )


def test_without_verdicts_there_is_no_share():
    assert share_killed({}) == "No mutant was run."
