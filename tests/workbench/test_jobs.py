"""Jobs are processes of their own: they are stopped, found again and resumed."""

import json
import os

import pytest

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog import read_run
from flmarket_sim.workbench import processes
from flmarket_sim.workbench.jobs import Job, Jobs
from tests.support.patience import wait_until

from .conftest import LONG, TEXT

pytestmark = pytest.mark.processes


@pytest.fixture
def jobs(tmp_path):
    """Jobs of an empty folder; what still runs afterwards is ended."""
    made = Jobs(tmp_path)
    yield made
    for child in list(made._children.values()):
        child.kill()
        child.wait()


def test_a_run_is_stopped_after_its_round_and_another_server_resumes_it(jobs):
    name = jobs.start("run", LONG)
    path = jobs.folder / name
    wait_until(lambda: list(path.glob("events/journal-*")))
    again = Jobs(jobs.folder)  # a server that was started meanwhile
    assert again.running(name) and again.job(name).what == "run"
    with pytest.raises(InputError, match="running already"):
        again.resume(name)
    again.stop(name)
    wait_until(lambda: not jobs.running(name))
    assert read_run(path)["outcome"] == "interrupted" and not again.running(name)
    assert "resume" in again.output(name)
    with pytest.raises(InputError, match="no process"):
        again.stop(name)
    jobs.resume(name)
    wait_until(lambda: (path / "run.json").exists() and jobs.running(name))


def test_a_run_ends_finished_and_is_not_resumed(jobs):
    name = jobs.start("run", TEXT)
    other = jobs.start("run", TEXT)
    assert other != name
    wait_until(lambda: not jobs.running(name) and not jobs.running(other))
    assert read_run(jobs.folder / name)["outcome"] == "finished"
    with pytest.raises(InputError, match="nothing to resume"):
        jobs.resume(name)


def test_sweeps_and_probes_are_started_too_and_can_be_opened(client, folder):
    swept = TEXT + "\n[sweep]\nseeds = [1, 2]\n"
    sweep = client.post("/api/start", json={"what": "sweep", "text": swept}).json()["name"]
    lies = {"auction": "pay-as-bid", "profiles": 2, "effort": "quick", "budgets": "1", "seed": 0}
    probe = client.post("/api/probe", json={"text": TEXT} | lies).json()["name"]

    def outcomes():
        listed = client.get("/api/folder").json()["entries"]
        return {row["name"]: row["outcome"] for row in listed}

    wait_until(lambda: "running" not in outcomes().values())
    assert outcomes()[sweep] == outcomes()[probe] == "finished"
    assert client.get("/api/page", params={"of": sweep}).json()["kind"] == "sweep"
    opened = client.get("/api/page", params={"of": probe}).json()
    assert "best-lies" in {table["id"] for table in opened["tables"]}
    refused = client.post("/api/probe", json={"text": TEXT} | lies | {"effort": "none"})
    assert refused.status_code == 400


def test_a_wrong_scenario_starts_nothing(jobs):
    for what, text in (
        ("run", "rounds = 0"), ("run", "rounds = "), ("study", TEXT), ("sweep", TEXT), ("rm", TEXT)
    ):  # fmt: skip
        with pytest.raises(FlmarketError):
            jobs.start(what, text)
    assert jobs.all() == []


def test_another_process_with_the_same_number_is_not_the_job(jobs):
    """Process numbers are given again; the moment of birth tells."""
    jobs.hidden.mkdir()
    record = {"name": "x", "what": "run", "process": os.getpid(), "birth": "long ago", "began": 0}
    (jobs.hidden / "x.json").write_text(json.dumps(record))
    assert isinstance(jobs.job("x"), Job) and not jobs.running("x")
    with pytest.raises(InputError):
        jobs.stop("x")  # it would have been this very test
    assert processes.birth(os.getpid()) and processes.birth(2**22 + 1) == ""


def test_a_study_that_was_not_started_here_cannot_be_resumed(jobs):
    (jobs.folder / "foreign").mkdir()
    (jobs.folder / "foreign" / "tasks.jsonl").write_text("")
    with pytest.raises(InputError, match="was not started here"):
        jobs.resume("foreign")
