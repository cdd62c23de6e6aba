"""Verify names what is damaged in runs, sweeps and studies, and says what it cannot check."""

import json
import shutil

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage.sealed_files import HASH_LIST
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
    tables = MARKET | {"model": {"name": "none"}}
    fm.sweep(build_scenario(tables), folder / "sweep", seeds=2, keep_events=True)
    return folder


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
