"""A written project is small, and says what is the owner's own."""

import runpy
import tomllib

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.flower.project import new_project, project_name
from flmarket_sim.privacy.hardened import HARDENED
from flmarket_sim.scenario.scenario_file import load_scenario

MOST_LINES = 30


def test_the_users_client_is_at_most_thirty_lines_beyond_her_model_and_data(tmp_path):
    new_project(tmp_path / "market")
    text = (tmp_path / "market" / "private_market" / "client.py").read_text()
    assert 10 < len(text.splitlines()) <= MOST_LINES
    assert "from private_market.own import Net, load_records" in text  # her model and data


def test_a_project_is_what_flower_and_this_package_read(tmp_path, monkeypatch):
    written = new_project(tmp_path / "My Market 2")
    assert all(path.is_file() for path in written) and len(written) == 7
    config = tomllib.loads((tmp_path / "My Market 2" / "pyproject.toml").read_text())
    assert config["project"]["name"] == "my-market-2"
    assert config["tool"]["flwr"]["app"]["components"] == {
        "serverapp": "private_market.server:app",
        "clientapp": "private_market.client:app",
    }
    monkeypatch.syspath_prepend(tmp_path / "My Market 2")
    scenario = load_scenario(tmp_path / "My Market 2" / "private_market" / "scenario.toml")
    assert scenario.budget.amount is not None and scenario.perturbation.name in HARDENED
    own = runpy.run_path(str(tmp_path / "My Market 2" / "private_market" / "own.py"))
    x, y = own["load_records"]({"part": 1, "parts": 4})
    assert x.shape == (len(y), 64) and x.min() >= 0.0 and x.max() <= 1.0
    assert own["Net"](64, 10).layer.weight.shape == (10, 64)


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        new_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("folder", "name"), [("a_b", "a-b"), ("2nd", "market-2nd"), ("Ann's", "ann-s")]
)
def test_a_project_has_a_name_that_flower_takes(tmp_path, folder, name):
    assert project_name(tmp_path / folder) == name
