"""A study gives the same bytes for any number of workers, and after any kill."""

import pytest

from flmarket_sim.experiments.store import read_results
from flmarket_sim.studies.study_run import FINISHED, TASKS, is_unfinished
from tests.support.command_line import flmarket
from tests.support.killed_command import run_killed
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes
SMALL = ["study.profiles=4", "study.factors=[0.3, 1.0]", 'study.effort="quick"']
AUCTIONS = 'study.auctions=["all-in", "all-in-critical", "fair-query", "pay-as-bid"]'
COMMAND = ["study", str(ROOT / "scenarios/studies/misreport-gain.toml")] + [
    part
    for setting in [*SMALL, AUCTIONS, "data.name=synthetic", "data.records=20000"]
    for part in ("--set", setting)
]


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "study"
    result = flmarket(*COMMAND, "--workers", 1, "--out", out)
    assert result.returncode == 0, result.stderr
    return files(out)


def test_two_workers_write_the_bytes_of_one(whole, tmp_path):
    result = flmarket(*COMMAND, "--workers", 2, "--out", tmp_path / "study")
    assert result.returncode == 0, result.stderr
    assert files(tmp_path / "study") == whole
    assert set(whole) == {"study.json", "rows.parquet", "table.md", "figure.png", "figure.svg"}


def test_a_killed_study_continues_to_the_same_bytes(whole, tmp_path):
    out = tmp_path / "study"
    for results, done in ((1, 1), (2, 3)):
        run_killed(results, *COMMAND, "--workers", 1, "--out", out)
        assert is_unfinished(out) and len(read_results(out / TASKS)) == done
    assert flmarket(*COMMAND, "--workers", 1, "--out", out).returncode == 0
    assert files(out) == whole


def test_a_stopped_study_without_out_continues_in_its_folder(tmp_path):
    result = flmarket(*COMMAND, "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / FINISHED).unlink()
    (folder / TASKS).touch()
    assert flmarket(*COMMAND, cwd=tmp_path).returncode == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [folder.name]
    assert flmarket(*COMMAND, cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
