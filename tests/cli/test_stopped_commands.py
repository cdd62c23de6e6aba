"""A command that is killed continues to the same output, with any number of workers; one that is
interrupted says so, and leaves its results and no process."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.support.command_line import flmarket
from tests.support.commands_here import called
from tests.support.killed_command import run_killed
from tests.support.paths import ROOT

pytestmark = pytest.mark.processes
MARKET = ("--scenario", ROOT / "scenarios/quickstart.toml", "--set", "market.bidders=2")
COMMANDS = {
    "privacy-audit": ("privacy", "audit", "--draws", 25_000, "--epsilon", 1),
    "probe": ("probe", "pay-as-bid", *MARKET, "--profiles", 2_100, "--effort", "quick"),
    "evaluate": (
        "evaluate",
        "all-in",
        "pay-as-bid",
        *MARKET,
        "--profiles",
        30,
        "--budgets",
        "0.3:0.9:0.3",
    ),
    "audit": ("audit", "all-in-critical", "--markets", 10),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_continues_to_the_output_of_two_workers(tmp_path, name):
    arguments = (*COMMANDS[name], "--json")
    whole = flmarket(*arguments, "--workers", 2, cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    assert "continuing" not in whole.stderr and list(tmp_path.iterdir()) == []
    run_killed(1, *arguments, "--workers", 1, cwd=tmp_path)
    continued = flmarket(*arguments, "--workers", 1, cwd=tmp_path)
    assert f"continuing from runs/{name}-" in continued.stderr
    assert continued.stdout == whole.stdout
    assert list(tmp_path.iterdir()) == [], "the results were printed and need no file"


SWEEP = "rounds = 2\n[model]\nname = 'none'\n[sweep]\nseeds = 40\n"
INTERRUPTED = COMMANDS | {
    "study": ("study", ROOT / "scenarios/studies/arbitrage.toml"),
    "sweep": ("sweep", "sweep.toml", "--out", "swept"),
}


@pytest.mark.parametrize(
    ("name", "number", "workers"),
    [
        ("privacy-audit", "SIGINT", 1),
        ("probe", "SIGTERM", 1),
        ("evaluate", "SIGTERM", 2),
        ("audit", "SIGINT", 1),
        ("study", "SIGTERM", 1),
        ("sweep", "SIGINT", 2),
    ],
)
def test_an_interrupted_command_says_so_and_leaves_its_results_and_no_process(
    tmp_path, name, number, workers
):
    (tmp_path / "sweep.toml").write_text(SWEEP)
    module = ("-m", "tests.support.interrupted_command", number)
    arguments = (*module, *INTERRUPTED[name], "--workers", workers)
    stopped = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "Traceback" not in stopped.stderr and "the same command" in stopped.stderr
    (results,) = tmp_path.rglob("tasks.jsonl")
    assert results.read_text().count("\n") >= 1
    children = [int(line.split()[1]) for line in stopped.stdout.splitlines() if "child" in line]
    assert len(children) >= workers - 1
    assert not any(alive(child) for child in children)


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (COMMANDS["audit"], "flmarket_sim.results.audit_result.audit"),
        (COMMANDS["probe"], "flmarket_sim.results.probe_result.probe"),
        (COMMANDS["evaluate"], "flmarket_sim.results.evaluation_result.evaluate"),
        (COMMANDS["privacy-audit"], "flmarket_sim.studies.privacy_audit_tasks.audit_tasks"),
        (COMMANDS["privacy-audit"], "flmarket_sim.experiments.engine.results_of"),
    ],
)
def test_a_command_without_any_result_says_that_nothing_is_kept(
    tmp_path, monkeypatch, arguments, place
):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(place, interrupted)
    ended = called(*arguments, "--workers", 1)
    assert ended.code == 130
    assert "nothing is kept, and the same command starts again" in " ".join(ended.err.split())
    assert list(tmp_path.iterdir()) == []


def alive(process):
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
