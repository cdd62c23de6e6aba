"""The wheel has the files of a market, the sdist those of the tests; neither has local files."""

import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

import flmarket_sim
from flmarket_sim.scenario.shipped import scenario_names
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "upkeep.dist", str(out)], cwd=ROOT, check=True, capture_output=True
    )
    return out


@pytest.fixture(scope="module")
def wheel(built):
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built):
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        return {
            member.name.partition("/")[2]: archive.extractfile(member).read()
            for member in archive.getmembers()
            if member.isfile()
        }


def files(folder, *patterns):
    paths = (path for pattern in patterns for path in (ROOT / folder).rglob(pattern))
    return {str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_has_scenarios_weights_pages_and_types(wheel):
    package = files("flmarket_sim", "*.py", "*.safetensors", "*.html", "*.css", "*.js", "py.typed")
    scenarios = {f"flmarket_sim/scenarios/{name}.toml" for name in scenario_names()}
    assert package | scenarios <= set(wheel)
    assert len(scenarios) >= 10 and any(name.endswith(".safetensors") for name in package)
    assert (
        wheel["flmarket_sim/scenarios/quickstart.toml"]
        == (ROOT / "scenarios/quickstart.toml").read_bytes()
    )


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    assert {name.partition("/")[0] for name in wheel} == {
        "flmarket_sim",
        f"flmarket_sim-{flmarket_sim.__version__}.dist-info",
    }


def test_the_sdist_has_what_the_tests_need(sdist):
    wanted = set().union(
        *(
            files(folder, "*.py", "*.md", "*.json", "*.toml")
            for folder in ("tests", "docs", "scenarios", "upkeep")
        )
    )
    assert wanted <= set(sdist)
    assert {
        "Makefile",
        "LICENSE",
        "CITATION.cff",
        "requirements.lock",
        "requirements-dev.lock",
        "pyproject.toml",
    } <= set(sdist)


def test_nothing_of_this_machine_is_in_them(wheel, sdist):
    for files in (wheel, sdist):
        for name, content in files.items():
            assert str(ROOT).encode() not in content, name
            assert "__pycache__" not in name and not name.startswith("."), name


def test_the_version_is_the_same_everywhere(wheel):
    version = flmarket_sim.__version__
    metadata = wheel[f"flmarket_sim-{version}.dist-info/METADATA"].decode()
    assert f"\nVersion: {version}\n" in metadata and "License-Expression: MIT" in metadata
    assert (
        re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
        == version
    )
    assert (
        re.search(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == version
    )
    program = subprocess.run(
        [sys.executable, "-c", "from flmarket_sim.cli import main; main()", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert program.stdout == f"flmarket {version}\n"


def test_an_unpacked_wheel_alone_runs_the_quickstart(built, tmp_path):
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    site = str(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {site!r}); from flmarket_sim import cli; "
        f"assert {site!r} in cli.__file__; cli.main()"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            code,
            "run",
            "quickstart",
            "--set",
            "rounds=2",
            "--out",
            "run",
        ],
        cwd=tmp_path / "empty",
        env={},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "empty/run/run.json").exists()
