"""`flmarket verify` says what holds, names what does not, and ends with a code for scripts."""

import json
import shutil

import pytest

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.support.commands_here import called

MARKET = {
    "rounds": 2,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 20},
    "market": {"bidders": 5},
    "model": {"name": "none"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    fm.run(build_scenario(MARKET), folder / "run")
    for seed, name in ((1, "sweep"), (5, "another sweep")):
        tables = MARKET | {"seed": seed}
        fm.sweep(build_scenario(tables), folder / name, seeds=2)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "results")


def test_what_holds_ends_well(folder):
    said = called("verify", folder / "run", folder / "sweep")
    assert said.code == 0
    assert "run: this run holds (" in said.out and "sweep: this sweep holds (" in said.out


def test_what_does_not_hold_is_named_and_ends_with_one(folder):
    path = folder / "run/owners.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    said = called("verify", folder / "run")
    assert said.code == 1
    assert "this run does not hold" in said.out and "owners.parquet is damaged" in said.out
    (answer,) = json.loads(called("verify", folder / "run", "--json").out)
    assert "owners.parquet" in answer["damaged"][0]


def test_the_request_of_another_sweep_is_refused(folder):
    shutil.copy(folder / "another sweep/sweep.json", folder / "sweep/sweep.json")
    said = called("verify", folder / "sweep")
    assert said.code == 1 and "are not of one result" in said.out
    assert called("report", folder / "sweep", "--out", folder / "page.html").code == 2


def test_what_is_no_result_is_an_error_of_the_user(tmp_path):
    said = called("verify", tmp_path)
    assert said.code == 2 and "is not something to verify" in said.err
