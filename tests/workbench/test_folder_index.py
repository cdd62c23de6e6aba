"""The list of a folder says of every result what it is and how it ended."""

import json
import os
import shutil
import time

import pytest

from flmarket_sim.workbench.folder_index import FolderIndex
from flmarket_sim.workbench.jobs import Jobs
from tests.support.sealed_json import write_sealed


@pytest.fixture
def listed(folder):
    def entries(spend=10.0):
        found = FolderIndex(folder, Jobs(folder)).entries(spend)
        return {row["name"]: row for row in found["entries"]}

    return entries


def copied(folder, name, **changes):
    shutil.copytree(folder / "small", folder / name)
    path = folder / name / "run.json"
    write_sealed(path, json.loads(path.read_text()) | changes)
    return path


def test_a_run_has_its_outcome_rounds_and_money(listed, client):
    row = listed()["small"]
    assert (row["kind"], row["outcome"], row["scenario"]) == ("run", "finished", "small")
    assert row["rounds"] == row["of"] == 4 and row["accuracy"] is None
    asked = {"run": "small", "query": "select sum(spent) from rounds"}
    assert client.post("/api/sql", json=asked).json()["rows"] == [[pytest.approx(row["spent"])]]


def test_a_killed_run_says_running_and_is_listed_as_stopped(folder, listed):
    path = copied(folder, "killed", outcome="running")
    assert listed()["killed"]["outcome"] == "running"  # it was written a moment ago
    os.utime(path, (time.time() - 60,) * 2)
    assert listed()["killed"]["outcome"] == "stopped"


def test_interrupted_and_failed_runs_say_so(folder, listed):
    copied(folder, "stopped", outcome="interrupted")
    copied(folder, "broken", outcome="failed", error="ContractError: too much")
    assert listed()["stopped"]["outcome"] == "interrupted"
    assert listed()["broken"]["error"] == "ContractError: too much"


def test_what_is_not_a_result_is_not_listed_and_damage_is_said(folder, listed):
    (folder / "notes").mkdir()
    (folder / "notes.txt").write_text("")
    (folder / ".hidden").mkdir()
    (folder / "no-probe.parquet").write_text("no Parquet")
    (copied(folder, "damaged")).write_text("{")
    rows = listed()
    assert set(rows) == {"small", "damaged", "no-probe.parquet"}
    assert rows["damaged"]["problem"] and rows["no-probe.parquet"]["problem"]


def test_a_call_spends_a_bounded_time_and_the_next_one_goes_on(folder):
    for number in range(6):
        copied(folder, f"copy-{number}")
    index = FolderIndex(folder, Jobs(folder))
    first = index.entries(spend=0.0)
    assert len(first["entries"]) == 7 and first["missing"] > 0
    while first["missing"]:
        before, first = first["missing"], index.entries(spend=0.02)
        assert first["missing"] < before
    assert all(row["rounds"] == 4 for row in first["entries"])


def test_a_changed_file_is_read_again(folder):
    index = FolderIndex(folder, Jobs(folder))
    assert index.entries(5)["entries"][0]["outcome"] == "finished"
    path = folder / "small" / "run.json"
    path.write_text(path.read_text().replace('"finished"', '"failed"'))
    assert index.entries(5)["entries"][0]["outcome"] == "failed"


def test_sweeps_and_studies_are_told_from_runs(folder, listed):
    (folder / "swept").mkdir()
    (folder / "swept" / "sweep.json").write_text('{"name": "x", "runs": 6, "scenario": {}}')
    (folder / "asked").mkdir()
    (folder / "asked" / "tasks.jsonl").write_text("")
    rows = listed()
    assert (rows["swept"]["kind"], rows["swept"]["of"]) == ("sweep", 6)
    assert (rows["asked"]["kind"], rows["asked"]["outcome"]) == ("study", "stopped")
