"""Verify names what is damaged in runs, sweeps and studies, and says what it cannot check."""

import json
import shutil

import pyarrow.compute as pc
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.store import FileStore
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage.atomic_files import write_parquet
from flmarket_sim.storage.sealed_files import HASH_LIST, SEAL
from tests.support.sealed_json import without_hashes

MARKET = {
    "rounds": 2,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 20},
    "market": {"bidders": 5},
    "model": {"name": "logistic"},
    "log": {"models": "every"},
}


def turn(path, place=-1):
    """Turns one bit, by default in the middle of the file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if place < 0 else place] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fm.run(build_scenario(MARKET), folder / "run")
    sweep_again(folder / "sweep")
    return folder


def sweep_again(folder):
    tables = MARKET | {"model": {"name": "none"}}
    fm.sweep(build_scenario(tables), folder, seeds=2, keep_events=True)


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "results")


def test_whole_results_hold(folder):
    seen = []
    found = fm.verify(folder / "run", folder / "sweep", progress=lambda *where: seen.append(where))
    assert [answer.kind for answer in found] == ["run", "sweep", "run", "run"]
    assert all(answer.holds and not answer.unchecked for answer in found)
    assert seen[-1] == (len(seen), len(seen))


@pytest.mark.parametrize(
    "name",
    [
        "run/run.json",
        "run/owners.parquet",
        "run/ledger.parquet",
        "run/events/kind=payment/part-00000.parquet",
        "run/models/buyer-0/rounds-00001.safetensors",
        "sweep/sweep.json",
        "sweep/tasks.jsonl",
        "sweep/summary.parquet",
        "sweep/timings.parquet",
        f"sweep/{HASH_LIST}",
    ],
)
def test_a_turned_bit_is_found_by_the_name_of_its_file(folder, name):
    turn(folder / name)
    found = fm.verify(folder / "run", folder / "sweep")
    (damaged,) = [answer for answer in found if not answer.holds]
    assert str(folder / name) in damaged.damaged[0]


def test_lost_and_foreign_files_are_named(folder):
    (folder / "run/ledger.parquet").unlink()
    shutil.rmtree(folder / "run/events/kind=payment")
    bids = folder / "run/events/kind=bid"
    shutil.copy(bids / "part-00000.parquet", bids / "part-00001.parquet")
    (answer,) = fm.verify(folder / "run")
    told = "\n".join(answer.damaged)
    for words in ("ledger.parquet is lost", "kind=payment/part-00000.parquet is lost"):
        assert words in told
    assert "part-00001.parquet is not a file of this run" in told


def test_a_run_of_an_earlier_version_opens_and_is_said_to_have_no_hashes(folder):
    without_hashes(folder / "run")
    (answer,) = fm.verify(folder / "run")
    assert answer.holds and len(answer.unchecked) == 2
    assert fm.Run(folder / "run").summary()["outcome"] == "finished"


def test_a_summary_without_its_hash_is_refused_and_the_same_sweep_writes_it_anew(folder):
    swept = folder / "sweep"
    before = {path: path.read_bytes() for path in swept.glob("*.*")}
    summary = fm.read_sweep(swept)
    place = summary.column_names.index("spent")
    forged = summary.set_column(place, "spent", pc.multiply(summary.column("spent"), 1e9))
    write_parquet(swept / "summary.parquet", forged)
    (swept / HASH_LIST).unlink()
    told = rf"{HASH_LIST} is lost.* same `flmarket sweep` again writes it anew"
    with pytest.raises(InputError, match=told):
        fm.read_sweep(swept)
    with pytest.raises(InputError, match=told):
        fm.report(swept)
    (damaged,) = [answer for answer in fm.verify(swept) if not answer.holds]
    assert f"{HASH_LIST} is lost" in damaged.damaged[0]
    sweep_again(swept)
    assert fm.read_sweep(swept).equals(summary)
    assert {path: path.read_bytes() for path in swept.glob("*.*")} == before


def test_a_sweep_of_an_earlier_version_has_a_summary_without_a_hash(folder):
    swept = folder / "sweep"
    content = json.loads((swept / "sweep.json").read_text())
    del content[SEAL]
    (swept / "sweep.json").write_text(json.dumps(content))
    (swept / HASH_LIST).unlink()
    assert fm.read_sweep(swept).num_rows == 2
    answer = fm.verify(swept)[0]
    assert answer.holds and "no hash of a summary" in answer.unchecked[0]


@pytest.mark.parametrize("lines", [0, 1])
def test_a_sweep_with_fewer_results_than_finished_runs_is_named(folder, lines):
    tasks = folder / "sweep/tasks.jsonl"
    tasks.write_text("".join(tasks.read_text().splitlines(keepends=True)[:lines]))
    answer = fm.verify(folder / "sweep")[0]
    assert f"tasks.jsonl is damaged or lost: it has {lines} results" in answer.damaged[0]
    tasks.unlink()
    answer = fm.verify(folder / "sweep")[0]
    assert "tasks.jsonl is damaged or lost: it has 0 results" in answer.damaged[0]


def test_a_result_of_another_type_is_found(folder, tmp_path):
    (tmp_path / "study").mkdir()
    for path in (folder / "sweep", tmp_path / "study"):
        (path / "tasks.jsonl").unlink(missing_ok=True)
        with FileStore(path / "tasks.jsonl") as store:
            store.add("key", 5)
            store.add("other", 5)
        answer = fm.verify(path)[0]
        assert "tasks.jsonl is damaged in line 1" in answer.damaged[0]


def test_a_study_is_checked_by_the_hashes_in_study_json(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.json").write_text(json.dumps({"sentences": [], "scenario": {}}))
    (answer,) = fm.verify(folder)
    assert answer.holds and "no hashes" in answer.unchecked[0]
    (folder / "study.json").write_text(
        json.dumps({"files": {"rows.parquet": "0" * 64}, "sentences": []})
    )
    (answer,) = fm.verify(folder)
    assert "rows.parquet is lost" in answer.damaged[0]


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(InputError, match="not something to verify"):
        fm.verify(tmp_path)
