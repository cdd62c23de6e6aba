"""The tail of a run reads every round once, whenever it looks, and never writes."""

import json

import pytest

import flmarket_sim as fm
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.eventlog.reader import read_events
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.workbench.jobs import Jobs
from flmarket_sim.workbench.live import Watch
from flmarket_sim.workbench.run_tail import RunTail

from .conftest import SMALL


@pytest.mark.parametrize("part", [2**20, 400])
def test_rounds_seen_while_a_run_goes_on_are_those_of_its_log(tmp_path, monkeypatch, part):
    """Also where parts are written in between, and journals disappear."""
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", part)
    tail, seen, messages = RunTail(tmp_path / "run"), [], []

    def look(*_):
        fresh = tail.fresh()
        seen.extend(fresh.rounds)
        messages.extend(fresh.messages)

    run = fm.run(build_scenario(SMALL | {"rounds": 20}), tmp_path / "run", progress=look)
    look()
    stored = read_events(run.path, "round").to_pylist()
    assert [row["seq"] for row in seen] == [row["seq"] for row in stored]
    assert [row["spent"] for row in seen] == [row["spent"] for row in stored]
    assert tail.fresh().rounds == []
    assert {one["kind"] for one in messages} >= {"bid", "payment"}
    assert all("owner" in one["sender"] for one in messages if one["kind"] == "bid")


def test_looking_changes_no_byte_of_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    alone = fm.run(build_scenario(SMALL), tmp_path / "alone")
    tail = RunTail(tmp_path / "watched")
    watched = fm.run(build_scenario(SMALL), tmp_path / "watched", progress=lambda *_: tail.fresh())
    assert alone.info["log"] == watched.info["log"]
    names = [sorted(p.name for p in run.path.rglob("*")) for run in (alone, watched)]
    assert names[0] == names[1]


def test_a_journal_that_ends_in_the_middle_of_a_group_is_read_up_to_there(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    cut = {}

    def save(done, total):
        journal = tmp_path / "run" / "events" / "journal-00000"
        cut[done] = journal.read_bytes()

    fm.run(build_scenario(SMALL), tmp_path / "run", progress=save)
    place = tmp_path / "half" / "events"
    place.mkdir(parents=True)
    (place / "journal-00000").write_bytes(cut[2] + cut[3][len(cut[2]) : -7])
    tail = RunTail(tmp_path / "half")
    assert len(tail.fresh().rounds) == 2
    (place / "journal-00000").write_bytes(cut[3])
    assert len(tail.fresh().rounds) == 1


def test_a_watch_adds_up_all_rounds_and_ends_with_a_finished_run(folder):
    news, ended = Watch(Jobs(folder), "small").look()
    assert ended and news["outcome"] == "finished" and len(news["rounds"]) == 4
    stored = read_events(folder / "small", "round").to_pylist()
    assert news["totals"]["spent"] == pytest.approx(sum(row["spent"] for row in stored))
    assert news["totals"]["of"] == 4


def test_the_stream_of_a_finished_run_ends(client):
    answer = client.get("/api/live", params={"name": "small"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [part for part in answer.text.split("\n\n") if part]
    assert json.loads(events[0].removeprefix("data: "))["totals"]["rounds"] == 4
    assert events[-1].startswith("event: end")
