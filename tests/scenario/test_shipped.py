"""Scenarios come with the package: a name is enough, in any folder."""

import json

import pytest
from typer.testing import CliRunner

from flmarket_sim.cli.app import app
from flmarket_sim.errors import ScenarioError
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.scenario.shipped import scenario_names, scenario_path
from tests.support.paths import ROOT


def test_every_scenario_of_the_checkout_is_shipped():
    files = [path.relative_to(ROOT / "scenarios") for path in (ROOT / "scenarios").rglob("*.toml")]
    assert scenario_names() == sorted(str(file.with_suffix("")) for file in files)
    for file in files:
        assert (
            scenario_path(str(file.with_suffix(""))).read_bytes()
            == (ROOT / "scenarios" / file).read_bytes()
        )


@pytest.mark.parametrize("name", ["paper/iid", "paper/iid.toml", "scenarios/paper/iid.toml"])
def test_a_name_is_enough_in_any_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load_scenario(name) == load_scenario(ROOT / "scenarios/paper/iid.toml")


def test_a_file_that_is_here_comes_before_a_shipped_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text('name = "mine"\n')
    assert load_scenario("quickstart").name == "mine"


def test_a_folder_of_that_name_is_not_in_the_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").mkdir()
    assert load_scenario("quickstart").name == "quickstart"


@pytest.mark.parametrize("ask", [load_scenario, scenario_path])
@pytest.mark.parametrize("name", ["papre/iid", "../quickstarts", "quickstar"])
def test_a_name_that_is_not_shipped_is_an_error_with_the_nearest(ask, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"did you mean '?(paper/iid|quickstart)'?\?"):
        ask(name)


def test_nothing_outside_the_shipped_folder_can_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("../../pyproject", "paper/../quickstart", ""):
        with pytest.raises(ScenarioError):
            scenario_path(name)


def test_the_list_shows_the_shipped_ones_where_there_is_no_folder_of_scenarios(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    shown = json.loads(CliRunner().invoke(app, ["list", "scenarios", "--json"]).stdout)
    assert [row["scenario"] for row in shown] == scenario_names()
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios/mine.toml").write_text('description = "my own"')
    shown = json.loads(CliRunner().invoke(app, ["list", "scenarios", "--json"]).stdout)
    assert shown == [{"scenario": "scenarios/mine.toml", "about": "my own"}]
