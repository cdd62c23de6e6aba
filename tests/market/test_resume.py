"""A run that was stopped in any way reads up to its last noted round, and goes on to the bytes of
an undisturbed one."""

import json
import os
import random
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import flmarket_sim as fm
from benchmarks.kills import (
    EVENTS_PER_PART,
    MARKETS,
    check_readable,
    fingerprint,
    killed_after,
    started,
)
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog import KINDS, parquet_log
from flmarket_sim.market import checkpoint
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.command_line import flmarket
from tests.support.patience import PATIENCE, wait_until
from tests.support.sealed_json import write_sealed

SMALL = {
    "rounds": 12,
    "data": {"name": "synthetic", "records": 4000},
    "owners": {"count": 60},
    "model": {"name": "none"},
}


@pytest.fixture
def often(monkeypatch):
    """Parts, journal and checkpoints as often as can be."""
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 300)
    monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


def stopped_after(rounds):
    def progress(done, total):
        if done == rounds:
            raise KeyboardInterrupt

    return progress


def broken_off(scenario, out, rounds):
    with pytest.raises(KeyboardInterrupt):
        fm.run(scenario, out, progress=stopped_after(rounds))


@pytest.mark.parametrize("name", MARKETS)
def test_every_kind_of_market_goes_on_from_every_round(tmp_path, often, name):
    scenario = build_scenario(MARKETS[name] | {"rounds": 4})
    fm.run(scenario, tmp_path / "whole")
    buyers = len(scenario.resolved_buyers())
    checkpoints = 0
    for rounds in range(1, 4 * buyers + 1):
        out = tmp_path / f"after {rounds}"
        broken_off(scenario, out, rounds)
        assert (
            fm.read_run(out)["outcome"] == "interrupted"
            and check_readable(out, tmp_path / "whole") > 0
        )
        saved = checkpoint.read_checkpoint(out)
        heard = []
        fm.resume(out, lambda done, total, heard=heard: heard.append(done))
        assert fingerprint(out) == fingerprint(tmp_path / "whole")
        if saved is not None:
            checkpoints += 1
            assert heard[:1] == (
                [sum(saved.facts.rounds) + 1] if sum(saved.facts.rounds) < 4 * buyers else []
            )
        else:
            assert heard[0] == 1
    assert checkpoints > 0 or name == "several buyers", (
        "the world is never quiet only where buyers overlap"
    )


def test_a_checkpoint_knows_the_money_that_is_under_way(tmp_path, often):
    broken_off(build_scenario(MARKETS["slow money"] | {"rounds": 9}), tmp_path / "run", 8)
    saved = checkpoint.read_checkpoint(tmp_path / "run")
    assert saved.facts.bills and len(saved.arrays["bill 0 names"])


@pytest.mark.processes
@pytest.mark.parametrize("name", ["several buyers", "stragglers", "learners", "kept models"])
def test_killed_processes_resume_to_the_same_bytes(tmp_path, monkeypatch, name):
    """`python -m benchmarks.kills` does this fifty times."""
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", EVENTS_PER_PART)
    whole, out, lot = tmp_path / "whole", tmp_path / "run", random.Random(name)
    fm.run(build_scenario(MARKETS[name]), whole)
    rounds, seen = sorted(lot.sample(range(1, MARKETS[name]["rounds"]), 2)), []
    for what, last in zip((json.dumps(MARKETS[name]), "resume"), rounds, strict=True):
        assert killed_after(out, what, last)
        seen.append(check_readable(out, whole))
    assert seen == sorted(seen)
    fm.resume(out)
    assert fingerprint(out) == fingerprint(whole)


def test_a_long_run_is_cut_by_its_events_and_not_by_the_clock(tmp_path, monkeypatch):
    """Journal and checkpoints come by the clock; no byte of a finished run shows when."""
    scenario = build_scenario(SMALL | {"rounds": 40})
    monkeypatch.setattr(parquet_log, "EVENTS_PER_PART", 500)
    fm.run(scenario, tmp_path / "never")
    for seconds in (0.0, 0.02):
        monkeypatch.setattr(parquet_log, "JOURNAL_SECONDS", seconds)
        monkeypatch.setattr(checkpoint, "SECONDS", seconds)
        fm.run(scenario, tmp_path / str(seconds))
        assert fingerprint(tmp_path / str(seconds)) == fingerprint(tmp_path / "never")
    assert len(list((tmp_path / "never/events/kind=bid").iterdir())) > 3


def test_what_cannot_be_resumed_is_refused_with_what_to_do(tmp_path, often):
    scenario = build_scenario(SMALL)
    with pytest.raises(InputError, match="not a directory"):
        fm.resume(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no run\.json"):
        fm.resume(tmp_path / "empty")

    done = fm.run(scenario, tmp_path / "done")
    before = fingerprint(done.path)
    assert fm.resume(done.path).info == done.info and fingerprint(done.path) == before

    out = tmp_path / "stopped"
    broken_off(scenario, out, 6)
    info = fm.read_run(out)
    for wrong, message in (
        ({"versions": info["versions"] | {"numpy": "0.1"}}, r"numpy 0\.1 \(now"),
        ({"scenario_sha256": "0" * 64}, "not of one result"),
        ({"scenario": info["scenario"] | {"rounds": 13}}, "hash"),
        ({"scenario": info["scenario"] | {"rounds": "many"}}, "rounds"),
        ({"versions": None}, "versions"),
    ):
        write_sealed(out / "run.json", info | wrong)
        with pytest.raises(InputError, match=message):
            fm.resume(out)
    (out / "run.json").write_text("{}")
    with pytest.raises(InputError, match="does not describe a run"):
        fm.resume(out)
    write_sealed(out / "run.json", info)
    fm.resume(out)
    assert fingerprint(out) == before


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("checkpoint.npz", "checkpoint.npz is damaged"),
        ("events/journal-*", "journal-.* is damaged"),
        ("events/kind=bid/part-00000.parquet", "bid"),
        ("owners.parquet", "owners"),
        ("run.json", "run.json cannot be read"),
    ],
)
def test_a_damaged_file_is_named_and_without_it_the_run_goes_on(tmp_path, often, file, message):
    scenario = build_scenario(SMALL)
    fm.run(scenario, tmp_path / "whole")
    for damage in ("cut", "turned"):
        out = tmp_path / damage
        broken_off(scenario, out, 7)
        (path,) = out.glob(file)
        content = bytearray(path.read_bytes())
        if damage == "cut":
            content = content[: len(content) // 2]
        else:
            content[len(content) // 2] ^= 255
        path.write_bytes(content)
        if file == "run.json" and damage == "turned":
            continue  # a letter of a description may be another
        with pytest.raises(FlmarketError, match=message):
            fm.resume(out)
        if file != "run.json":
            path.unlink()
            (out / "checkpoint.npz").unlink(missing_ok=True)
            fm.resume(out)
            assert fingerprint(out) == fingerprint(tmp_path / "whole")


@pytest.mark.processes
def test_two_runs_in_one_directory_are_refused_and_so_is_resuming_one_that_is_running(tmp_path):
    out = tmp_path / "run"
    process = started(out, json.dumps(SMALL | {"rounds": 100_000}))
    try:
        wait_until((out / "owners.parquet").exists)
        with pytest.raises(InputError, match="another process"):
            fm.resume(out)
        with pytest.raises(InputError, match=r"not empty|taken by another"):
            fm.run(build_scenario(SMALL), out)
        assert fm.read_events(out, "round").num_rows >= 0, "a run can be read while it is running"
    finally:
        process.kill()
        process.communicate()


def test_a_directory_whose_run_never_began_is_as_good_as_empty(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / ".run.json.tmp").write_text("{")
    assert fm.run(build_scenario(SMALL), tmp_path).info["outcome"] == "finished"
    assert not list(tmp_path.glob(".*"))


LITTLE_SPACE = """
import resource, sys
from flmarket_sim.cli import main
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint
parquet_log.EVENTS_PER_PART, parquet_log.JOURNAL_SECONDS = 300, 0.0
checkpoint.SECONDS, checkpoint.SHARE = 0.0, 1e9
if (limit := int(sys.argv.pop(1))):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
main()
"""
MARKET = 'rounds = {}\n[data]\nname = "synthetic"\nrecords = 4000\n[model]\nname = "none"\n'


@pytest.fixture
def little(tmp_path, often):
    """A market in a file, its run by somebody with space, and a way to run it with none: (file,
    run, `command(limit, ...)`)."""

    def command(limit, *arguments):
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")
        }  # its files must not grow either
        program = [sys.executable, "-c", LITTLE_SPACE, str(limit), *map(str, arguments)]
        told = subprocess.run(program, capture_output=True, text=True, env=plain)
        assert (
            told.returncode == 1
            and "flmarket resume" in told.stderr
            and "Traceback" not in told.stderr
        )
        return told.stderr

    (tmp_path / "m.toml").write_text(MARKET.format(60))
    fm.run(fm.load_scenario(tmp_path / "m.toml"), tmp_path / "whole")
    return tmp_path / "m.toml", tmp_path / "whole", command


def test_a_file_that_cannot_grow_is_a_clear_message_and_the_run_goes_on_later(tmp_path, little):
    market, whole, command = little
    assert "writing failed" in command(9_000, "run", market, "--out", tmp_path / "run")
    check_readable(tmp_path / "run", whole)
    fm.resume(tmp_path / "run")
    assert fingerprint(tmp_path / "run") == fingerprint(whole)


def test_a_full_disk_is_a_clear_message_and_the_run_goes_on_later(tmp_path, little):
    market, whole, command = little
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True
    ).returncode:
        pytest.skip("mounting a small disk is not allowed here")
    try:
        for arguments in (("run", market, "--out", disk / "run"), ("resume", disk / "run")):
            assert "the disk is full" in command(0, *arguments)
            assert check_readable(disk / "run", whole) > 0
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        fm.resume(disk / "run")
        assert fingerprint(disk / "run") == fingerprint(whole)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_an_outside_model_may_remember_anything_so_its_run_is_simulated_again(tmp_path, often):
    """Checkpoints have what we know of; a module's own attributes are not among it."""
    scenario = build_scenario(
        SMALL | {"model": {"name": "tests.support.forgetful:Forgetful"}, "data": {"name": "digits"}}
    )
    fm.run(scenario, tmp_path / "whole")
    broken_off(scenario, tmp_path / "out", 5)
    assert checkpoint.read_checkpoint(tmp_path / "out") is None
    fm.resume(tmp_path / "out")
    assert fingerprint(tmp_path / "out") == fingerprint(tmp_path / "whole")


TEACHING = {
    "rounds": 6,
    "data": {"name": "synthetic", "records": 1200, "features": 5, "classes": 3},
    "owners": {"count": 60},
    "perturbation": {"name": "laplace"},
    "log": {"models": "every"},
}
LEARNERS = {
    "momentum": {"model": {"optimizer": "momentum", "schedule": "inverse-sqrt"}},
    "adam and a mean": {"model": {"optimizer": "adam", "averaging": 0.5}},
    "RMSprop": {"model": {"optimizer": {"name": "RMSprop", "momentum": 0.5}, "averaging": 1.0}},
    "local batches": {
        "learning": {"update": "local", "steps": 3, "batch": 4},
        "model": {"optimizer": "average"},
    },
}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_way_to_learn_goes_on_from_every_round(tmp_path, often, name):
    scenario = build_scenario(TEACHING | LEARNERS[name])
    whole = fm.run(scenario, tmp_path / "whole").path
    for rounds in range(1, 7):
        out = tmp_path / f"after {rounds}"
        broken_off(scenario, out, rounds)
        assert checkpoint.read_checkpoint(out).facts.rounds == [rounds]
        fm.resume(out)
        assert fingerprint(out) == fingerprint(whole)


@pytest.mark.parametrize("name", ["momentum", "adam and a mean", "RMSprop"])
def test_a_checkpoint_with_another_state_of_learning_is_damaged(tmp_path, often, name):
    scenario, out = build_scenario(TEACHING | LEARNERS[name]), tmp_path / "run"
    broken_off(scenario, out, 3)
    path = out / checkpoint.NAME
    with np.load(path) as content:
        arrays = {key: content[key] for key in content.files}
    learned = [key for key in arrays if key.startswith("learner 0 ")]
    assert any("optimizer" in key for key in learned)
    assert ("learner 0 average" in learned) == (name != "momentum")
    for key in learned:
        for wrong in (None, arrays[key][None], arrays[key] * np.nan, arrays[key].astype("f4")):
            changed = {one: array for one, array in arrays.items() if one != key}
            with path.open("wb") as file:
                np.savez(file, **changed, **({} if wrong is None else {key: wrong}))
            with pytest.raises(FlmarketError, match=r"checkpoint\.npz is damaged"):
                fm.resume(out)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    fm.resume(out)
    assert fingerprint(out) == fingerprint(fm.run(scenario, tmp_path / "whole").path)


def test_a_finished_run_whose_files_are_lost_is_not_called_whole(tmp_path):
    fm.run(build_scenario(SMALL), tmp_path / "run")
    for lost in ("events/kind=bid/part-00000.parquet", "ledger.parquet"):
        kept = (tmp_path / "run" / lost).read_bytes()
        (tmp_path / "run" / lost).unlink()
        with pytest.raises(InputError, match="lost"):
            fm.resume(tmp_path / "run")
        if "kind" in lost:
            with pytest.raises(InputError, match=r"is lost: run\.json names it"):
                fm.read_events(tmp_path / "run", "bid")
        (tmp_path / "run" / lost).write_bytes(kept)
    assert fm.resume(tmp_path / "run").info["outcome"] == "finished"


STOPPED_EARLY = """
import os, signal
from flmarket_sim.cli import main
from flmarket_sim.eventlog import parquet_log
parquet_log.JOURNAL_SECONDS, note = 0.0, parquet_log.ParquetLog.note

def note_and_ask_to_stop(log):
    note(log)
    if log.safe:
        os.kill(os.getpid(), signal.SIGTERM)
        parquet_log.ParquetLog.note = note

parquet_log.ParquetLog.note = note_and_ask_to_stop
main()
"""


@pytest.mark.processes
def test_interrupted_runs_say_how_to_go_on_and_finished_ones_that_they_are(tmp_path):
    out, rounds = tmp_path / "ein Lauf", 30
    (tmp_path / "m.toml").write_text(MARKET.format(rounds))
    command = [
        sys.executable,
        "-c",
        STOPPED_EARLY,
        "run",
        str(tmp_path / "m.toml"),
        "--out",
        str(out),
    ]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    told = process.stderr
    assert process.returncode == 130 and "interrupted" in told and "flmarket resume" in told
    info, noted = fm.read_run(out), fm.read_events(out, "round")
    assert info["outcome"] == "interrupted" and 0 < len(noted) < rounds
    assert info["log"]["events"] == noted.column("seq")[-1].as_py()
    done = flmarket("resume", out)
    assert done.returncode == 0 and "events in" in done.stdout
    again = flmarket("resume", out)
    assert again.returncode == 0 and "finished already" in again.stderr
    assert fm.read_events(out, "round").num_rows == rounds


def test_journals_are_read_by_sql_and_parts_by_anything(tmp_path, often):
    broken_off(build_scenario(SMALL | {"rounds": 20}), tmp_path / "a [strange] * name?", 13)
    run = tmp_path / "a [strange] * name?"
    parts = sum(pq.read_metadata(part).num_rows for part in run.glob("events/kind=bid/*.parquet"))
    bids = fm.read_events(run, "bid").num_rows
    assert 0 < parts < bids
    assert fm.sql(run, "select count(*) as n, max(round) as last from bid").to_pylist() == [
        {"n": bids, "last": 12}
    ]
    assert fm.sql(run, "select count(*) as n from late").to_pylist() == [{"n": 0}]
    assert {row["buyer"] for row in fm.read_events(run, "round").to_pylist()} == {"buyer"}
    assert set(KINDS) >= {
        path.name.removeprefix("kind=") for path in (run / "events").glob("kind=*")
    }
