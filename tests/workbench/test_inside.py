"""No name leads out of the folder, neither by dots nor by links."""

import json

import pytest

from flmarket_sim.errors import InputError
from flmarket_sim.workbench.inside import result_path


@pytest.mark.parametrize(
    "name",
    ["..", "../secret", "small/../../secret", "/etc", "", ".", ".workbench", "small/.lock",
     "a\x00b", "a\\b", "C:x", "small//events", "x" * 400, "nothing"],
)  # fmt: skip
def test_names_that_are_not_results_are_refused(folder, name):
    (folder.parent / "secret").mkdir()
    with pytest.raises(InputError):
        result_path(folder, name)


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run.json").write_text("{}")
    (folder / "link").symlink_to(outside, target_is_directory=True)
    with pytest.raises(InputError, match="leads out"):
        result_path(folder, "link")


def test_a_link_within_a_result_that_leads_out_is_refused(folder, tmp_path):
    (tmp_path / "secret.parquet").write_text("secret")
    (folder / "small" / "events" / "kind=round" / "part-00001.parquet").symlink_to(
        tmp_path / "secret.parquet"
    )
    with pytest.raises(InputError, match="leads out"):
        result_path(folder, "small")


def test_results_in_the_folder_are_found(folder):
    assert result_path(folder, "small") == folder / "small"
    assert result_path(folder, "small/owners.parquet").is_file()


def test_links_are_neither_listed_nor_opened(client, folder, tmp_path, finished):
    (folder / "link").symlink_to(finished, target_is_directory=True)
    assert [one["name"] for one in client.get("/api/folder").json()["entries"]] == ["small"]
    for path in ("/api/page?of=link", "/api/live?name=link", "/api/page?of=../x"):
        assert client.get(path).status_code == 400
    refused = client.post("/api/sql", json={"run": "link", "query": "select 1"})
    assert refused.status_code == 400
    assert client.get("/static/..%2Fapp.py").status_code == 404
    assert client.get("/static/app.py").status_code == 404


def test_the_record_of_a_job_is_never_read_outside(client, folder):
    record = {"name": "x", "what": "run", "process": 1, "birth": "", "began": 0}
    (folder.parent / "x.json").write_text(json.dumps(record))
    (folder.parent / "x.log").write_text("secret")
    (folder / ".workbench").mkdir()
    assert client.get("/api/output", params={"name": "../../x"}).json() == {"output": ""}
    assert client.get("/api/live", params={"name": "../../x"}).status_code == 400
    for path in ("/api/stop", "/api/resume"):
        assert client.post(path, json={"name": "../../x"}).status_code == 400
