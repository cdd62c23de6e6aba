"""A command imports what it needs, and no more: most of the time of a short command is imports."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import flmarket_sim as fm
from flmarket_sim.cli.app import COMMANDS, app
from flmarket_sim.experiments.market_runs import load_data
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE

HEAVY = {
    "cvxpy", "duckdb", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "rich", "scipy",
    "simpy", "sklearn", "torch",
}  # fmt: skip
CODE = "import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
COMMAND = """
import sys
from flmarket_sim.cli import main
try:
    main()
finally:
    print('MODULES', *{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)
"""


def python(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done


def imported_by(*arguments):
    """The libraries that `flmarket ARGUMENTS` imports, of those that take long."""
    last = python(COMMAND, *arguments).stderr.splitlines()[-1].split()
    assert last[0] == "MODULES"
    return HEAVY & set(last)


@pytest.mark.parametrize("module", ["flmarket_sim", "flmarket_sim.cli"])
def test_importing_the_package_imports_no_heavy_library(module):
    assert not HEAVY & set(python(CODE.format(module=module)).stdout.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_no_heavy_library(arguments):
    assert not imported_by(*arguments)


def test_a_run_imports_no_library_that_it_does_not_need(tmp_path):
    load_data(fm.load_scenario("quickstart"))  # prepares the features, for which it needs sklearn
    run = ("run", "quickstart", "--set", "rounds=2")
    needed = {"numpy", "pyarrow", "pydantic", "rich", "simpy"}
    laplace = ("--set", "perturbation=laplace")
    by_pyarrow = {"pandas"}  # pyarrow.array imports it where it is installed
    assert imported_by(*run, *laplace, "--out", tmp_path / "laplace") - by_pyarrow == needed
    # priv-unit needs the incomplete Beta function
    found = imported_by(*run, "--out", tmp_path / "priv-unit") - by_pyarrow
    assert found == needed | {"scipy"}


def test_a_list_of_the_rules_does_not_import_the_solvers_that_some_of_them_use():
    assert "cvxpy" not in imported_by("list", "aggregation")


def test_every_command_of_the_list_has_a_help_page_of_its_own():
    listed = CliRunner().invoke(app, ["--help"]).stdout
    for name, (_, summary) in COMMANDS.items():
        assert f"  {name} " in listed and summary in listed
        assert f" {name} [OPTIONS]" in CliRunner().invoke(app, [name, "--help"]).stdout
