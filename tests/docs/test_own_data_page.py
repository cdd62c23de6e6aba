"""What docs/own-data.md and docs/writing-a-dataset.md say is run."""

import dataclasses
import re
import shutil
import tomllib

import pytest

import flmarket_sim as fm
from examples import hospitals
from flmarket_sim.learning.file_data import CsvData, FileOptions
from flmarket_sim.learning.record_files import MISSING_TEXTS
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.scenario_file import parse_scenario
from flmarket_sim.testing import check_dataset
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/own-data.md").read_text()
WRITING = (ROOT / "docs/writing-a-dataset.md").read_text()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_market_of_the_page_runs_on_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples/hospitals.csv", tmp_path)
    (text,) = blocks(PAGE, "toml")
    run = fm.run(parse_scenario(text), tmp_path / "run", rounds=2)
    assert run.scenario.owners.count == len(hospitals.HOSPITALS) == 40
    assert run.rounds.to_pylist()[-1]["accuracy"] is not None


def test_the_example_is_what_its_script_makes_and_the_page_shows():
    lines = (ROOT / "examples/hospitals.csv").read_text().splitlines()
    assert lines == hospitals.rows()
    shown = re.findall(r"^    (hospital.*)$", PAGE, re.MULTILINE)
    assert shown[0] == lines[0] and shown[1].split(",")[1:] == lines[1].split(",")[1:]
    assert shown[1] == lines[1]


def test_the_tables_have_every_option_and_its_default():
    rows = dict(re.findall(r"^\| `(\w+)` \|(.*?)\|", PAGE, re.MULTILINE))
    for field in dataclasses.fields(CsvData):
        assert field.name in rows, field.name
        stated = rows[field.name].strip()
        if field.name == "missing_texts":
            assert tuple(tomllib.loads(f"x = {stated.strip('`')}")["x"]) == MISSING_TEXTS
        elif field.default is dataclasses.MISSING:
            assert stated == ""
        elif field.default is not None:
            assert tomllib.loads(f"x = {stated.strip('`')}")["x"] == field.default
    assert {field.name for field in dataclasses.fields(FileOptions)} <= rows.keys()


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(PAGE, "python")
    exec(compile(code, "own-data.md", "exec"), {})
    assert "finished" in capsys.readouterr().out


def test_the_sizes_of_the_page_are_those_of_the_data_sets():
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d,+ ]+) \| (\d+), (\d+) \|", PAGE, re.MULTILINE)
    assert len(rows) == 8
    for name, _, features, classes in rows:
        source = registry.datasets.create(name)
        assert source.shape() == (int(features), int(classes)), name


def test_the_data_set_of_the_other_page_keeps_its_contract(tmp_path, monkeypatch):
    code, check, test = blocks(WRITING, "python")
    (tmp_path / "coin_tosses.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    exec(compile(check, "check", "exec"), {})
    names = {}
    exec(compile(test, "test", "exec"), names)
    names["test_the_coins_keep_the_contract"]()
    table = {"name": "coin_tosses:CoinTosses", "bias": 0.8}
    run = fm.run("quickstart", tmp_path / "run", data=table, rounds=2)
    assert run.scenario.data.options == {"bias": 0.8}


@pytest.mark.parametrize("watchers", [1, 20])
def test_the_rings_of_the_examples_keep_their_contract(monkeypatch, watchers):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    data = check_dataset("two_rings:TwoRings", records=400, watchers=watchers)
    assert len(data.owner_names) == watchers
