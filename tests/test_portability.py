"""The package needs no POSIX system, and its tree can be checked out on Windows and macOS.

No Windows machine runs these tests. They take away what it lacks (tests/support/without_posix.py).
"""

import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.paths import ROOT

IMPORTS = """
import importlib, pkgutil
from tests.support import without_posix
without_posix.block()
import flmarket_sim
found = [module.name for module in pkgutil.walk_packages(flmarket_sim.__path__, "flmarket_sim.")]
for name in found:
    if name.endswith("__main__"):
        continue  # importing it runs the command line
    importlib.import_module(name)
print(len(found))
"""
EVERY_PROCESS = """
from tests.support import without_posix
without_posix.block(("torch", "pyarrow.parquet", "duckdb", "matplotlib.pyplot", "sklearn.datasets",
                     "filelock", "multiprocessing.connection", "multiprocessing.popen_spawn_posix"))
"""
MARKET = """
from flmarket_sim.eventlog import parquet_log
from flmarket_sim.market import checkpoint
parquet_log.EVENTS_PER_PART, parquet_log.JOURNAL_SECONDS = 150, 0.0
checkpoint.SECONDS, checkpoint.SHARE = 0.0, 1e9
from flmarket_sim.cli import main
main()
"""
SMALL = """
rounds = 6
data = {name = "digits"}
owners = {count = 12}
market = {bidders = 12}
log = {models = "every"}
"""
ILLEGAL = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]$')
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def without_posix(code, *arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join((str(cwd), str(ROOT))), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def tracked():
    listed = subprocess.run(
        ["git", "ls-files", "--stage", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("this is not a git checkout")
    entries = [entry.partition("\t") for entry in listed.stdout.split("\0") if entry]
    return {path: fields.split()[0] for fields, _, path in entries}


def test_no_tracked_file_is_a_link(tracked):
    links = [path for path, mode in tracked.items() if mode == "120000"]
    assert not links, f"Windows has no symbolic links by default: {links}"


def test_every_name_is_possible_on_windows(tracked):
    for path in tracked:
        for part in path.split("/"):
            assert not ILLEGAL.search(part) and not RESERVED.match(part), path


def test_no_two_names_differ_by_case_only(tracked):
    folders = {"/".join(path.split("/")[:depth]) for path in tracked for depth in range(1, 9)}
    twice = [name for name, count in Counter(map(str.lower, folders)).items() if count > 1]
    assert not twice, f"Windows and macOS take these for one file: {twice}"


def test_every_module_can_be_imported_without_posix():
    done = without_posix(IMPORTS, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


def test_a_module_that_needs_posix_would_be_noticed():
    """The check above can fail."""
    code = "from tests.support import without_posix\nwithout_posix.block(())\n"
    needs = (
        without_posix(code + "import fcntl", cwd=ROOT),
        without_posix(code + "import os\nos.fork()", cwd=ROOT),
    )
    assert "No module named 'fcntl'" in needs[0].stderr
    assert "has no attribute 'fork'" in needs[1].stderr


@pytest.fixture
def place(tmp_path):
    """A directory whose Python processes are without POSIX from their start, workers too."""
    (tmp_path / "sitecustomize.py").write_text(EVERY_PROCESS)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path


def test_a_market_runs_and_its_log_is_read_without_posix(place):
    run = without_posix(MARKET, "run", "small.toml", "--out", "run", cwd=place)
    assert run.returncode == 0, run.stderr
    asked = without_posix(MARKET, "sql", "run", "SELECT count(*) AS n FROM rounds", cwd=place)
    assert asked.returncode == 0 and "6" in asked.stdout, asked.stderr


def test_a_sweep_over_two_processes_runs_without_posix(place):
    axes = '[sweep]\nseeds = 2\ngrid = {"budget.factor" = [1, 2]}\n'
    (place / "sweep.toml").write_text(SMALL + axes)
    run = without_posix(MARKET, "sweep", "sweep.toml", "--workers", "2", "--out", "s", cwd=place)
    assert run.returncode == 0, run.stderr
    assert (place / "s" / "summary.parquet").exists()
