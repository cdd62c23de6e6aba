"""The command line in real processes: exit codes, results on stdout, other messages on stderr."""

import json
import os
import re
import subprocess
import sys

import pytest
from typer.main import get_command

import flmarket_sim as fm
from docs.command_line import commands
from flmarket_sim.cli import main
from flmarket_sim.cli.app import app
from flmarket_sim.learning import data_files
from tests.support.command_line import flmarket, json_output
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE, wait_until


def test_run_writes_a_log_and_says_what_happened(tmp_path):
    out = tmp_path / "mäin run"
    result = flmarket("run", "scenarios/quickstart.toml", "--out", out)
    assert result.returncode == 0, result.stderr
    for word in (
        "round",
        "budget",
        "spent",
        "privacy sold",
        "error bound",
        "accuracy",
        "events in",
    ):
        assert word.split()[0] in result.stdout
    assert fm.read_events(out, "round").num_rows == 50
    again = flmarket("run", "scenarios/quickstart.toml", "--out", out)
    assert again.returncode == 2 and "not empty" in again.stderr and "Traceback" not in again.stderr


def test_run_in_json_with_overrides_and_seed(tmp_path):
    settings = ["--set", "auction.name=all-in", "--set", "rounds=3", "--seed", "9", "--json"]
    told = json_output("run", ROOT / "scenarios/quickstart.toml", *settings, cwd=tmp_path)
    assert told["outcome"] == "finished" and told["buyers"]["buyer"]["rounds"] == 3
    info = fm.read_run(tmp_path / told["directory"])
    assert info["seed"] == 9 and info["scenario"]["auction"]["name"] == "all-in"
    second = json_output("run", ROOT / "scenarios/quickstart.toml", *settings, cwd=tmp_path)
    assert second["directory"] == told["directory"] + ".2"


def test_a_wrong_scenario_is_one_clear_paragraph_and_exit_2(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("rounds = -3\nauctoin = 1\n")
    for command in ("validate", "run"):
        result = flmarket(command, bad)
        assert result.returncode == 2 and "Traceback" not in result.stderr and result.stdout == ""
        assert "2 errors" in result.stderr and "did you mean 'auction'" in result.stderr


@pytest.mark.parametrize(
    ("failure", "words"),
    [(LookupError, "LookupError: no room"), (MemoryError, "not enough memory for this (no room)")],
)
def test_an_unforeseen_failure_is_one_paragraph_too(monkeypatch, capsys, failure, words):
    def fail(*_):
        raise failure("no room")

    monkeypatch.setattr("flmarket_sim.scenario.scenario_file.load_scenario", fail)
    monkeypatch.setattr(sys, "argv", ["flmarket", "validate", "x.toml"])
    monkeypatch.delenv("FLMARKET_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ending:
        main()
    told = capsys.readouterr().err
    assert ending.value.code == 1 and words in told and "Traceback (" not in told


def test_places_that_cannot_be_written_are_refused(tmp_path):
    for out in ("/proc/nothing/here", tmp_path / ("x" * 300)):
        result = flmarket("run", "scenarios/quickstart.toml", "--out", out)
        assert (
            result.returncode == 2
            and "cannot be made" in result.stderr
            and "Traceback" not in result.stderr
        )


def test_validate_accepts_what_is_right():
    result = flmarket("validate", "scenarios/paper/iid.toml")
    assert result.returncode == 0 and "1,000 owners" in result.stdout
    assert (
        json_output("validate", "scenarios/paper/iid.toml", "--json")["scenario"]["rounds"] == 100
    )


@pytest.mark.parametrize(
    "what",
    [
        "auctions",
        "aggregation",
        "behaviours",
        "checks",
        "studies",
        "datasets",
        "partitions",
        "delays",
        "models",
        "scenarios",
    ],
)
def test_lists_name_everything(what):
    assert flmarket("list", what).returncode == 0
    assert len(json_output("list", what, "--json")) >= 2


def test_an_unknown_list_is_refused():
    result = flmarket("list", "auktions")
    assert result.returncode == 2 and "auctions" in result.stderr


def test_missing_data_is_exit_1_with_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_files, "search_folders", lambda: [tmp_path])
    monkeypatch.setattr(
        sys,
        "argv",
        ["flmarket", "run", str(ROOT / "scenarios/paper/iid.toml"), "--out", str(tmp_path / "run")],
    )
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 1 and "flmarket data fetch nsl-kdd" in capsys.readouterr().err
    assert fm.read_run(tmp_path / "run")["outcome"] == "failed"


def test_data_list_and_check_tell_what_is_there():
    told = {row["name"]: row["where"] for row in json_output("data", "list", "--json")}
    assert told["digits"] == told["breast-cancer"] == "built in"
    assert {"adult", "bank", "census-income", "letter", "mnist-5k", "nsl-kdd"} <= set(told)
    missing = "missing" in told["nsl-kdd"]
    assert flmarket("data", "check", "nsl-kdd").returncode == (1 if missing else 0)


def test_evaluate_compares_auctions_in_a_table_json_and_figure(tmp_path):
    common = [
        "evaluate",
        "dm-regretnet",
        "all-in-critical",
        "--scenario",
        "scenarios/paper/iid.toml",
        "--profiles",
        "20",
        "--floor",
        "2",
        "--workers",
        "1",
    ]
    shown = flmarket(*common, "--budgets", "0.5", "--regret", "2")
    assert (
        shown.returncode == 0
        and "all-in-critical" in shown.stdout
        and "regret" in shown.stdout
        and re.search(r"\d\.\d\d \[\d+\.\d\d, \d+\.\d\d\]", shown.stdout)
    ), shown.stderr
    scores = json_output(
        *common, "--budgets", "0.2:1.0:0.4", "--json", "--figure", tmp_path / "f.png"
    )
    assert [score["budget_factor"] for score in scores] == ["0.2", "0.2", "0.6", "0.6", "1", "1"]
    assert (tmp_path / "f.png").stat().st_size > 10_000
    common.remove("dm-regretnet")
    for wrong in (["--budgets", "1:0:1"], ["--budgets", "x"], ["--rule", "no-rule"]):
        told = flmarket(*common, *wrong)
        assert told.returncode == 2 and "Traceback" not in told.stderr


def test_train_writes_weights_that_can_be_used(tmp_path):
    market = ["--scenario", "scenarios/quickstart.toml", "--set", "owners.privacy_budget=[0.5,2.0]"]
    out = tmp_path / "w.safetensors"
    result = flmarket("train", "dm-regretnet", *market, "--steps", "3", "--out", out, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["steps"] == 3
    assert (
        fm.auctions.create("dm-regretnet", weights=str(out)).learned.facts["scenario"]
        == "quickstart"
    )
    for wrong in (
        ["all-in"],
        ["dm-regretnet", "--rule", "uniform"],
        ["dm-regretnet", "--preset", "slow"],
    ):
        told = flmarket("train", wrong[0], *market, *wrong[1:], "--out", tmp_path / "v.safetensors")
        assert told.returncode == 2 and "Traceback" not in told.stderr


def test_sql_on_a_run(tmp_path):
    flmarket("run", "scenarios/quickstart.toml", "--set", "rounds=2", "--out", tmp_path / "run")
    assert json_output("sql", tmp_path / "run", "select count(*) as n from bid", "--json") == [
        {"n": 60}
    ]
    assert (
        json_output("sql", tmp_path / "run", "select sum(winners) as w from rounds", "--json")[0][
            "w"
        ]
        > 0
    )
    marked = flmarket(
        "sql", tmp_path / "run", "select '[/b]' as x, [1.0, 'nan'::double] as y, 2 as x"
    )
    assert marked.returncode == 0 and "[/b]" in marked.stdout and "nan" in marked.stdout
    for wrong in ("selec 1", ""):
        told = flmarket("sql", tmp_path / "run", wrong)
        assert told.returncode == 2 and "SQL" in told.stderr and "Traceback" not in told.stderr


def test_a_run_that_is_asked_to_stop_completes_its_files(tmp_path):
    program = os.path.join(os.path.dirname(sys.executable), "flmarket")
    settings = [
        "--set",
        "model.name=none",
        "--set",
        "rounds=1000000",
        "--out",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        [program, "run", "scenarios/quickstart.toml", *settings],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: list(tmp_path.glob("run/events/journal-*")))  # a round is over
    process.terminate()
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "interrupted" in told
    assert fm.read_run(tmp_path / "run")["outcome"] == "interrupted"
    assert fm.read_events(tmp_path / "run", "round").num_rows > 0


def test_every_argument_of_every_command_says_what_it_is():
    """click 8.5 drops these words where typer is below 0.21, which Flower needs."""
    for name, command in commands(get_command(app)):
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                assert getattr(parameter, "help", None), f"{name}: {parameter.name}"
