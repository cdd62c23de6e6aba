"""The form has a field for everything that a scenario file can say, and the file's errors."""

import pytest

from flmarket_sim.scenario.cheating_tables import CheckTable
from flmarket_sim.scenario.check import check_scenario
from flmarket_sim.scenario.contribution_table import Contribution
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.workbench.scenario_check import check_tables, check_text
from flmarket_sim.workbench.scenario_form import IN_TEXT, plugin_options, scenario_form

from .conftest import TEXT


def fields():
    return {f["path"]: f for section in scenario_form()["sections"] for f in section["fields"]}


def test_every_value_of_a_scenario_has_a_field():
    known = fields()
    for key, value in Scenario().as_dict().items():
        if key in IN_TEXT or key == "study":
            continue
        if not isinstance(value, dict):
            assert key in known
        for inner in value if isinstance(value, dict) else ():
            place = f"{key}.{inner}"
            assert place in known or place in IN_TEXT or (inner == "name" and key in known), place


def test_the_defaults_of_the_form_are_those_of_scenarios():
    usual = Scenario().as_dict()
    for name, table in (("contribution", Contribution()), ("check", CheckTable(name="variance"))):
        usual[name] = table.model_dump(mode="json") | {"name": None}  # not there by default
    for path, field in fields().items():
        place = usual
        for key in path.split("."):
            place = place[key] if isinstance(place, dict) and key in place else None
        if field["kind"] == "plugin":
            place = place["name"] if place else None
        if path != "budget.factor":  # the scenario's own default, not the table's
            assert field["default"] == place, path


def test_choices_and_plugins_are_offered_by_name():
    known = fields()
    assert known["owners.accept"]["choices"] == ["rational", "always"]
    assert known["owners.families"]["kind"] == "names"
    assert "pay-as-bid" in scenario_form()["plugins"]["auction"]


def test_options_of_a_plugin_are_those_of_its_constructor():
    options = {field["path"]: field for field in plugin_options("partition", "iid")}
    assert options["sigma"]["kind"] == "number" and options["minimum"]["least"] == 1


def test_every_built_in_plugin_has_readable_options():
    for kind, names in scenario_form()["plugins"].items():
        for name in names:
            assert isinstance(plugin_options(kind, name), list)


@pytest.mark.parametrize(
    "tables",
    [
        {"rounds": 0},
        {"rounds": "many", "owners": {"count": -1, "colour": 3}},
        {"auction": {"name": "no-such-auction"}},
        {"auction": "posted-price", "market": {"bidders": 1000}},
        {"owners": {"rate": [2, 1]}},
    ],
)
def test_the_errors_are_those_of_the_file(tables):
    _, problems = check_scenario(tables)
    shown = check_tables(tables)["problems"]
    assert problems and [one["message"] for one in shown] == [p.message for p in problems]


def test_errors_in_a_text_have_their_line():
    found = check_text(TEXT.replace("rounds = 3", "rounds = 0"))
    assert [(one["path"], one["line"]) for one in found["problems"]] == [("rounds", 2)]
    assert check_text("rounds = ")["problems"][0]["message"].startswith("the scenario is not TOML")


def test_a_right_scenario_says_what_can_be_started():
    assert check_text(TEXT)["summary"]["starts"] == ["run"]
    swept = check_text(TEXT + "\n[sweep]\nseeds = [1, 2]\n")
    assert swept["summary"]["starts"] == ["run", "sweep"]


def test_the_server_checks_forms_and_texts(client):
    by_form = client.post("/api/check", json={"tables": {"rounds": 0}}).json()
    assert by_form["problems"][0]["path"] == "rounds" and by_form["text"] == "rounds = 0\n"
    assert client.post("/api/check", json={"text": TEXT}).json()["problems"] == []
    for wrong in ({}, {"text": 3}, {"tables": [1]}):
        assert client.post("/api/check", json=wrong).status_code == 400
    assert client.post("/api/check", content=b"[").status_code == 400
    assert client.get("/api/scenario", params={"name": "../x"}).status_code == 400
    assert {"quickstart", "paper/iid"} <= {o["name"] for o in client.get("/api/scenarios").json()}
