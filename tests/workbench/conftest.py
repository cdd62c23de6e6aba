"""A workbench over a folder with a finished run, as a client without a browser sees it."""

from __future__ import annotations

import pytest

import flmarket_sim as fm
from flmarket_sim.scenario.scenario_file import build_scenario

pytest.importorskip("starlette", reason="the extra [workbench] is not installed")

PORT, TOKEN = 8765, "a-token-of-the-tests"
HOST = f"127.0.0.1:{PORT}"
SMALL = {
    "name": "small",
    "rounds": 4,
    "data": {"name": "synthetic", "records": 4000},
    "model": {"name": "none"},
    "aggregation": {"name": "opt-aggr", "error": "coordinate"},
}
TEXT = """name = "small"
rounds = 3

[data]
name = "synthetic"
records = 4000

[model]
name = "none"

[aggregation]
error = "coordinate"
"""
LONG = TEXT.replace("rounds = 3", "rounds = 100000")


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The directory of a finished run; tests do not change it."""
    folder = tmp_path_factory.mktemp("finished")
    return fm.run(build_scenario(SMALL), folder / "small").path


@pytest.fixture
def folder(tmp_path, finished):
    """A folder with copies of one finished run."""
    import shutil

    root = tmp_path / "results"
    shutil.copytree(finished, root / "small")
    return root


@pytest.fixture
def client(folder):
    """A client that knows the token and names itself as the workbench's own page."""
    from starlette.testclient import TestClient

    from flmarket_sim.workbench.app import application

    client = TestClient(application(folder, TOKEN, PORT), base_url=f"http://{HOST}")
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    client.headers["origin"] = f"http://{HOST}"
    return client
