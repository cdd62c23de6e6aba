"""Sweeps: axes become runs, runs become rows, and nothing that happens to one run is felt by
another."""

import json
import os
import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.summary import summarise
from flmarket_sim.eventlog.totals import buyers_totals
from flmarket_sim.learning.dataset import load_data
from flmarket_sim.market.simulation import accuracy_yardsticks, rounds_only
from flmarket_sim.report.sweep_tables import means
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.sweep.sweep_plan import parse_sweep, points
from flmarket_sim.sweep.sweep_runs import run_sweep
from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE, wait_until

MARKET = """
name = "small"
seed = 7
rounds = 3
[data]
name = "synthetic"
records = 4000
[model]
name = "none"
"""
SWEEP = """
[sweep]
seeds = 2
[sweep.grid]
"auction.name" = ["all-in", "all-in-critical"]
"budget.factor" = [0.5, 1.0]
"""
FOREIGN = '''
import os, signal, time
from flmarket_sim.auctions.all_in import AllIn

class Kills(AllIn):
    """Ends its own process."""
    name = "kills"
    def decide(self, bids, budget, rng):
        os.kill(os.getpid(), signal.SIGKILL)

class Fails(AllIn):
    """Fails."""
    name = "fails"
    def decide(self, bids, budget, rng):
        raise ZeroDivisionError("no luck")

class Slow(AllIn):
    """Takes its time."""
    name = "slow"
    def decide(self, bids, budget, rng):
        time.sleep(0.2)
        return super().decide(bids, budget, rng)
'''


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    (tmp_path / "foreign_auctions.py").write_text(FOREIGN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def axes_of(sizes, table):
    fields = ['"owners.rate"', '"owners.privacy_budget"', '"market.levels"', '"privacy.clip"']
    lists = [
        [k + 1 if "levels" in f else k + 1.0 for k in range(n)]
        for f, n in zip(fields, sizes, strict=False)
    ]
    return f"[sweep.{table}]\n" + "".join(
        f"{f} = {values}\n" for f, values in zip(fields, lists, strict=False)
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.integers(1, 3), st.integers(1, 4))
def test_a_grid_is_a_product_a_zip_is_one_step_and_every_run_has_its_own_id(sizes, together, seeds):
    text = MARKET + f"[sweep]\nseeds = {seeds}\n" + axes_of(sizes, "grid")
    text += f"[sweep.zip]\n'owners.count' = {[100 + k for k in range(together)]}\n"
    text += f"'market.bidders' = {[5 + k for k in range(together)]}\n"
    plan = parse_sweep(text)
    expected = together
    for size in sizes:
        expected *= size
    assert len(list(points(plan.axes))) == expected and len(plan.runs) == expected * seeds
    assert len({run.id for run in plan.runs}) == len(plan.runs)
    assert all(
        run.point["owners.count"] - 100 == run.point["market.bidders"] - 5 for run in plan.runs
    )


def test_every_combination_meets_the_same_seeds_and_the_same_owners(tmp_path):
    plan = parse_sweep(MARKET + SWEEP)
    by_point = {}
    for run in plan.runs:
        by_point.setdefault(tuple(run.point.values()), []).append(run.seed)
    assert set(map(tuple, by_point.values())) == {(7, 8)}
    listed = parse_sweep(MARKET + SWEEP.replace("seeds = 2", "seeds = [40, 3]"))
    assert listed.seeds == (40, 3)
    rows = run_sweep(plan, tmp_path / "s", workers=2).to_pylist()
    for seed in (7, 8):
        money = {
            row["budget"] for row in rows if row["seed"] == seed and row["budget.factor"] == 1.0
        }
        assert len(money) == 1, (
            "the money depends on who is asked, and two auctions ask the same owners"
        )


def test_the_id_of_a_run_is_the_hash_of_its_scenario_and_old_hashes_stay():
    run = parse_sweep(MARKET + SWEEP).runs[0]
    tables = {
        "name": "small",
        "seed": 7,
        "rounds": 3,
        "model": {"name": "none"},
        "auction": {"name": "all-in"},
    }
    alone = build_scenario(
        tables | {"data": {"name": "synthetic", "records": 4000}, "budget": {"factor": 0.5}}
    )
    assert run.id == alone.digest() == run.scenario.digest()


def test_a_bare_path_and_a_quoted_one_are_the_same_and_set_replaces_both():
    quoted = parse_sweep(MARKET + SWEEP)
    bare = parse_sweep(MARKET + SWEEP.replace('"auction.name"', "auction.name"))
    assert [run.id for run in quoted.runs] == [run.id for run in bare.runs]
    fewer = parse_sweep(
        MARKET + SWEEP, overrides=['sweep.grid.auction.name=["fair-query"]', "sweep.seeds=1"]
    )
    assert [run.point["auction.name"] for run in fewer.runs] == ["fair-query"] * 2


def test_totals_without_files_are_those_of_the_log(tmp_path):
    for name in ("quickstart", "studies/unreliable", "studies/liars"):
        scenario = fm.load_scenario(ROOT / f"scenarios/{name}.toml", ["rounds=4"])
        logged = fm.read_events(fm.run(scenario, tmp_path / name).path, "round").to_pylist()
        assert rounds_only(scenario) == logged
        buyers = [buyer.name for buyer in scenario.resolved_buyers()]
        beside = accuracy_yardsticks(scenario, load_data(scenario))
        by_rows = buyers_totals(logged, buyers, beside)
        assert by_rows and by_rows == summarise(tmp_path / name)["buyers"], (
            "by columns they are the same"
        )


def test_one_process_and_two_write_the_same_bytes_with_and_without_logs(tmp_path):
    plan = parse_sweep(MARKET + SWEEP)
    kept = parse_sweep(MARKET + SWEEP, overrides=["sweep.keep_events=true"])
    tables = [run_sweep(plan, tmp_path / f"{n}", workers=n) for n in (1, 2)]
    assert (tmp_path / "1/summary.parquet").read_bytes() == (
        tmp_path / "2/summary.parquet"
    ).read_bytes()
    assert tables[0].equals(fm.read_sweep(tmp_path / "2"))
    assert tables[0].equals(run_sweep(kept, tmp_path / "kept", workers=2))
    run = tables[0].to_pylist()[0]["run"]
    assert fm.read_run(tmp_path / "kept/runs" / run)["scenario_sha256"] == run
    assert fm.read_events(tmp_path / "kept/runs" / run, "bid").num_rows == 30
    assert {row["outcome"] for row in tables[0].to_pylist()} == {"finished"}
    timed = pq.read_table(tmp_path / "2/timings.parquet")
    assert timed.num_rows == 8 and "seconds" not in tables[0].column_names


def test_a_second_call_does_nothing_that_is_done_and_another_sweep_is_refused(tmp_path):
    plan = parse_sweep(MARKET + SWEEP)
    run_sweep(plan, tmp_path / "s", workers=2)
    before, heard = (tmp_path / "s/summary.parquet").read_bytes(), []
    run_sweep(
        plan, tmp_path / "s", workers=2, progress=lambda done, total: heard.append((done, total))
    )
    assert heard == [(8, 8)] and (tmp_path / "s/summary.parquet").read_bytes() == before
    with pytest.raises(InputError, match="another sweep"):
        run_sweep(parse_sweep(MARKET.replace("rounds = 3", "rounds = 4") + SWEEP), tmp_path / "s")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        run_sweep(plan, tmp_path / "full")


def test_a_sweep_of_an_older_version_is_refused_with_what_to_do(tmp_path):
    plan = parse_sweep(MARKET + SWEEP, overrides=["sweep.seeds=1"])
    run_sweep(plan, tmp_path / "s")
    (tmp_path / "s/parts").mkdir()
    with pytest.raises(InputError, match=r"older version.*another directory with `out`"):
        run_sweep(plan, tmp_path / "s")
    assert fm.read_sweep(tmp_path / "s").num_rows == 4


def test_runs_with_other_weights_or_another_plug_in_are_done_again(tmp_path, foreign):
    text = MARKET + "[sweep]\n[sweep.grid]\n'auction.name' = ['all-in', 'foreign_auctions:Slow']\n"
    before = parse_sweep(text).keys
    module = tmp_path / "foreign_auctions.py"
    module.write_text(module.read_text() + "\nX = 1\n")
    after = parse_sweep(text).keys
    assert [before[run] == after[run] for run in before] == [True, False]


@pytest.mark.processes
def test_runs_that_fail_or_kill_their_process_are_rows_and_are_tried_again(tmp_path, foreign):
    names = ["all-in", "foreign_auctions:Fails", "foreign_auctions:Kills", "pay-as-bid"]
    text = (
        MARKET
        + f"[sweep]\nseeds = 2\n[sweep.grid]\n'auction.name' = {names}\n'owners.count' = [5, 100]\n"
    )
    heard = []
    rows = run_sweep(
        parse_sweep(text), tmp_path / "s", 2, lambda done, total: heard.append((done, total))
    ).to_pylist()
    assert len(rows) == 16 and heard[-1] == (8, 8)
    for row in rows:
        if row["owners.count"] == 5:
            assert row["stage"] == "scenario" and "only 5" in row["message"]
        elif row["auction.name"].endswith("Fails"):
            assert row["stage"] == "market" and "no luck" in row["message"] and row["spent"] is None
        elif row["auction.name"].endswith("Kills"):
            assert row["stage"] == "worker" and "signal 9" in row["message"]
        else:
            assert row["outcome"] == "finished" and row["stage"] is None and row["rounds"] == 3
    heard.clear()
    run_sweep(parse_sweep(text), tmp_path / "s", 2, lambda done, total: heard.append((done, total)))
    assert heard[0] == (4, 8) and heard[-1] == (8, 8), "what failed is tried again"


def test_an_axis_may_have_the_name_of_a_total(tmp_path):
    plan = parse_sweep(
        MARKET + "[sweep]\n[sweep.grid]\nrounds = [1, 2]\n'owners.rate' = [0.5, [0.5, 1.0]]\n"
    )
    table = run_sweep(plan, tmp_path / "s")
    assert (
        table.column("rounds").to_pylist()
        == table.column("total_rounds").to_pylist()
        == [1, 1, 2, 2]
    )
    assert table.column("owners.rate").to_pylist() == ["0.5", "[0.5, 1.0]"] * 2


def test_means_are_over_seeds_with_an_interval_around_them(tmp_path):
    plan = parse_sweep(MARKET + SWEEP)
    lines = means(run_sweep(plan, tmp_path / "s", workers=2), plan)
    assert len(lines) == 4 and all(line["runs"] == 2 and line["failed"] == 0 for line in lines)
    assert all(line["spent_low"] <= line["spent"] <= line["spent_high"] for line in lines)


@pytest.mark.processes
def test_a_sweep_that_is_asked_to_stop_leaves_a_summary_and_goes_on_later(tmp_path, foreign):
    path, out = tmp_path / "slow.toml", tmp_path / "out"
    path.write_text(
        MARKET + "[sweep]\nseeds = 12\n[sweep.grid]\n'auction.name' = ['foreign_auctions:Slow']\n"
    )
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    command = [program, "sweep", str(path), "--out", str(out), "--workers", "2"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: any(path.stat().st_size for path in out.glob("tasks.jsonl")))
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "interrupted" in told and "Traceback" not in told
    done = fm.read_sweep(out).num_rows
    assert 0 < done < 12 and set(fm.read_sweep(out).column("outcome").to_pylist()) == {"finished"}
    told = json_output("sweep", path, "--out", out, "--plan", "--json", cwd=tmp_path)
    assert [run["state"] for run in told].count("finished") == done
    assert json_output("sweep", path, "--out", out, "--json", cwd=tmp_path)["failed"] == 0
    assert fm.read_sweep(out).num_rows == 12


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ("[sweep.grid]\n'auktion.name' = ['all-in']\n", ["9: auktion", "did you mean 'auction'"]),
        ("[sweep.grid]\n'auction.prise' = [1.0, 2.0]\n", ["auction.prise", "no such option"]),
        (
            "[sweep.grid]\n'rounds.x' = [1]\n'buyers.3.name' = ['a']\n",
            ["rounds is a value", "buyers", "2 errors"],
        ),
        ("[sweep.zip]\n'rounds' = [1, 2]\n'market.levels' = [1]\n", ["one length", "rounds has 2"]),
        (
            "[sweep.grid]\n'rounds' = []\n'seed' = [1]\n'market.levels' = 3\n",
            ["no values", "sweep.seeds", "must be a list"],
        ),
        (
            "[sweep.grid]\n'rounds' = [1, 1]\n[sweep.zip]\n'market.levels' = [1, 2]\n",
            ["more than once"],
        ),
        ("[sweep.grid]\n'rounds' = [1]\n[sweep.zip]\n'rounds' = [2]\n", ["an axis already"]),
        ("[sweep]\nseeds = 0\ngird = 1\n", ["2 errors", "at least 1", "did you mean 'grid'"]),
        ("[sweep]\nseeds = 10000000\n", ["more than 1,000,000"]),
        ("[sweep.grid]\n'rounds' = [-1, 0]\n", ["rounds", "greater than or equal to 1"]),
        ("", ["no [sweep] table"]),
    ],
)
def test_what_can_never_run_is_said_at_once_with_its_place(sweep, words):
    with pytest.raises(InputError) as told:
        parse_sweep(
            "rounds = 3\n[data]\nname = 'synthetic'\nrecords = 4000\n[model]\nname = 'none'\n\n"
            + sweep,
            "f.toml",
        )
    assert all(word in str(told.value) for word in words), told.value


def test_the_command_line_shows_the_plan_runs_it_and_refuses_wrong_files(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(MARKET + SWEEP)
    shown = flmarket("sweep", path, "--plan", cwd=tmp_path)
    assert (
        shown.returncode == 0
        and "8 runs: 8 to do" in shown.stdout
        and not (tmp_path / "runs").exists()
    )
    told = flmarket("sweep", path, "--workers", "2", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "8 runs: 8 to do" in told.stderr and "Means over seeds" in told.stdout
    (folder,) = (tmp_path / "runs").iterdir()
    assert fm.read_sweep(folder).num_rows == 8
    assert json.loads((folder / "sweep.json").read_text())["file"] == MARKET + SWEEP
    path.write_text(MARKET + SWEEP.replace("auction.name", "auktion.name"))
    for command in ("sweep", "validate"):
        wrong = flmarket(command, path, cwd=tmp_path)
        assert (
            wrong.returncode == 2 and "auktion" in wrong.stderr and "Traceback" not in wrong.stderr
        )
    none = flmarket("sweep", ROOT / "scenarios/quickstart.toml")
    assert none.returncode == 2 and "no [sweep] table" in none.stderr
    with pytest.raises(InputError, match=r"no sweep\.json"):
        fm.read_sweep(tmp_path)


def test_reading_a_sweep_does_not_import_torch():
    code = "import sys, flmarket_sim as fm; fm.read_sweep; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
