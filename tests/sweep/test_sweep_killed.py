"""Sweeps and their processes are killed at some result; done again, they end as if nothing had
been."""

import json
import multiprocessing
import random
from pathlib import Path

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.sweep.sweep_folder import TASKS, finished_runs
from flmarket_sim.sweep.sweep_plan import parse_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep
from tests.support.killed_command import run_killed
from tests.support.patience import wait_until
from tests.support.sealed_json import write_sealed

pytestmark = pytest.mark.processes
TEXT = """
name = "small"
seed = 7
rounds = 40
[data]
name = "synthetic"
records = 4000
[model]
name = "none"
[sweep]
seeds = 6
[sweep.grid]
"auction.name" = ["all-in", "all-in-critical"]
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def whole(tmp_path):
    run_sweep(parse_sweep(TEXT), tmp_path / "whole", workers=1)
    return (tmp_path / "whole/summary.parquet").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found through /proc")
@pytest.mark.parametrize("keep", ["false", "true"])
def test_a_killed_sweep_takes_its_processes_along_and_goes_on_without_doing_anything_twice(
    tmp_path, whole, keep
):
    lot, path, out = random.Random(keep), tmp_path / "small.toml", tmp_path / "out"
    path.write_text(
        TEXT.replace("seeds = 6", f"seeds = 6\nkeep_events = {keep}") if keep == "true" else TEXT
    )
    plan = parse_sweep(path.read_text())
    wanted = lot.randint(2, 5)
    children = run_killed(wanted, "sweep", path, "--out", out, "--workers", 2)
    assert len(children) == 2
    wait_until(lambda: not any(alive(child) for child in children))
    done, heard = finished_runs(out, plan), []
    assert len(done) == wanted
    table = run_sweep(plan, out, 2, lambda *progress: heard.append(progress))
    assert heard[0] == (len(done), 12), "what was done is not done again"
    rows = table.column("run").to_pylist()
    assert len(rows) == len(set(rows)) == 12
    if keep == "false":
        assert (out / "summary.parquet").read_bytes() == whole
    else:  # another sweep by its hash, with the same rows
        assert table.equals(fm.read_sweep(tmp_path / "whole"))
        assert sorted(path.name for path in (out / "runs").iterdir()) == sorted(rows)


def test_killed_processes_of_a_sweep_cost_their_runs_and_the_next_call_does_those(tmp_path, whole):
    plan, out, killed = parse_sweep(TEXT), tmp_path / "out", []

    def kill_one(done, total):
        if done in (2, 5):
            child = random.Random(done).choice(multiprocessing.active_children())
            killed.append(child.pid)
            child.kill()

    rows = run_sweep(plan, out, 2, kill_one).to_pylist()
    lost = [row["stage"] for row in rows].count("worker")
    assert len(killed) == 2 and lost <= 2 and len(rows) == 12, (
        "a process may have been killed between two runs"
    )
    heard = []
    run_sweep(plan, out, 2, lambda *progress: heard.append(progress))
    assert heard[0] == (12 - lost, 12) and (out / "summary.parquet").read_bytes() == whole


def three_more(plan, out):
    """Three further runs of the sweep, then an interruption."""
    before = len(finished_runs(out, plan))

    def stop(done, total):
        if done == before + 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, out, 1, stop)


def test_a_line_that_was_cut_off_is_no_result_and_nothing_is_written_behind_it(tmp_path, whole):
    plan, out = parse_sweep(TEXT), tmp_path / "out"
    for _ in range(2):
        three_more(plan, out)
        with (out / TASKS).open("a") as file:
            file.write("0123 4567 {")
    assert len(finished_runs(out, plan)) == 6
    run_sweep(plan, out, 1)
    assert (out / "summary.parquet").read_bytes() == whole


def test_a_sweep_does_not_go_on_with_other_versions(tmp_path, whole):
    plan, out = parse_sweep(TEXT), tmp_path / "out"
    three_more(plan, out)
    facts = json.loads((out / "sweep.json").read_text())
    write_sealed(out / "sweep.json", facts | {"versions": facts["versions"] | {"numpy": "1.0"}})
    with pytest.raises(InputError, match=r"begun with numpy 1\.0 \(now"):
        run_sweep(plan, out, 1)
    (out / "sweep.json").write_text(json.dumps(facts))
    run_sweep(plan, out, 1)
    assert (out / "summary.parquet").read_bytes() == whole


def test_a_damaged_line_is_named_and_once_it_is_deleted_its_run_is_done_again(tmp_path, whole):
    plan, out = parse_sweep(TEXT), tmp_path / "out"
    three_more(plan, out)
    lines = (out / TASKS).read_text().splitlines(keepends=True)
    (out / TASKS).write_text("".join([lines[0], "{}{}\n", *lines[2:]]))
    with pytest.raises(InputError, match=r"damaged in line 2 .*delete that line"):
        run_sweep(plan, out, 1)
    (out / TASKS).write_text("".join([lines[0], *lines[2:]]))
    assert len(finished_runs(out, plan)) == 2
    run_sweep(plan, out, 1)
    assert (out / "summary.parquet").read_bytes() == whole


def test_a_run_whose_kept_log_is_lost_is_done_again(tmp_path):
    plan = parse_sweep(TEXT, overrides=["sweep.keep_events=true", "sweep.seeds=1"])
    table = run_sweep(plan, tmp_path / "out", 1)
    lost = table.column("run").to_pylist()[1]
    (tmp_path / "out/runs" / lost / "run.json").unlink()
    heard = []
    assert run_sweep(plan, tmp_path / "out", 1, lambda *counts: heard.append(counts)).equals(table)
    assert heard == [(1, 2), (2, 2)] and fm.read_run(tmp_path / "out/runs" / lost)
