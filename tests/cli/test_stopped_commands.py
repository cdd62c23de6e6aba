"""A command that is killed continues to the same output, with any number of workers."""

import pytest

from tests.support.command_line import flmarket
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
