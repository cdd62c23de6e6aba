"""Files of a sweep that hold something else than a sweep writes are refused in one paragraph."""

import json
import shutil

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.store import FileStore, _checksum, read_results
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.sweep.sweep_folder import read_sweep, read_sweep_json
from flmarket_sim.sweep.sweep_plan import plan_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep
from tests.support.commands_here import called
from tests.support.sealed_json import write_sealed

SMALL = {"rounds": 1, "owners": {"count": 20}, "model": {"name": "none"}}
ODD = [5, [], {}, "text", None, True, [5], {"totals": 5, "seconds": 1.0}, {"seconds": 1.0},
       {"totals": {"buyer": 5}, "seconds": 1.0}, {"totals": {"buyer": {"spent": []}}, "seconds": 1},
       {"totals": {"buyer": {"rounds": 2.5}}, "seconds": 1.0}, {"totals": {}, "seconds": "long"},
       {"totals": {"buyer": {"spent": "much"}}, "seconds": 1.0}]  # fmt: skip


@pytest.fixture(scope="module")
def plan():
    return plan_sweep(build_scenario(SMALL), sweep__seeds=2)


@pytest.fixture(scope="module")
def finished(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps") / "sweep"
    run_sweep(plan, folder)
    return folder


@pytest.fixture
def sweep(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "sweep")


def stored(value):
    """A line of a store whose checksum is right."""
    text = json.dumps(value)
    return f"key {_checksum('key', text)} {text}\n"


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
def test_a_result_of_another_shape_is_refused_with_its_line(sweep, plan, value):
    file = sweep / "tasks.jsonl"
    file.write_text(file.read_text() + stored(value))
    with pytest.raises(InputError, match=r"tasks\.jsonl is damaged in line 3 \(.*delete that line"):
        run_sweep(plan, sweep)


def test_what_a_sweep_writes_is_read(sweep, plan):
    assert len(run_sweep(plan, sweep)) == 2 and read_sweep_json(sweep)["runs"] == 2


@pytest.mark.parametrize("key", ["name", "sha256", "runs", "axes", "seeds", "versions", "scenario"])
@pytest.mark.parametrize("value", [5.5, [[]], {"a": []}], ids=str)
def test_a_sweep_json_of_another_shape_is_refused_by_key(sweep, key, value):
    if key in ("versions", "scenario") and isinstance(value, dict):
        return
    content = json.loads((sweep / "sweep.json").read_text()) | {key: value}
    write_sealed(sweep / "sweep.json", content)
    with pytest.raises(InputError, match=rf"sweep\.json is damaged: {key}"):
        read_sweep(sweep)
    refused = called("report", sweep, "--out", sweep.parent / "page.html")
    assert refused.code == 2 and f"is damaged: {key}" in refused.err


@pytest.mark.parametrize(
    "content", [b"5", b"[]", b"\xff\xfe{}", b"[" * 100_000, b'{"runs": 1e999}']
)
def test_a_sweep_json_that_is_no_object_is_refused(sweep, content):
    (sweep / "sweep.json").write_bytes(content)
    refused = called("report", sweep, "--out", sweep.parent / "page.html")
    assert refused.code == 2 and "sweep.json" in refused.err and "not foreseen" not in refused.err


@pytest.mark.parametrize("value", [5, {}, "text", [5], [[]], None], ids=json.dumps)
def test_rows_of_a_study_of_another_shape_are_refused(tmp_path, value):
    (tmp_path / "tasks.jsonl").write_text(stored(value))
    with (
        pytest.raises(InputError, match="line 1"),
        FileStore(tmp_path / "tasks.jsonl", list[dict[str, object]]),
    ):
        pass
    assert read_results(tmp_path / "tasks.jsonl") == {"key": value}
