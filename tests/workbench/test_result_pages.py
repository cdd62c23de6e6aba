"""Results open as their report pages do, and stand beside each other by what differs."""

import pytest

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.report.html import page, sources
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.workbench.result_pages import MOST_COMPARED, ResultPages
from tests.support.sealed_json import write_sealed

from .conftest import SMALL


def test_a_result_has_the_charts_and_tables_of_its_report(client, folder):
    shown = client.get("/api/page", params={"of": "small"}).json()
    report = page.content([sources.read(folder / "small")])
    assert [chart["id"] for chart in shown["charts"]] == [chart["id"] for chart in report["charts"]]
    assert shown["tables"] == report["tables"] and shown["charts"]


def test_results_beside_each_other_are_named_by_what_differs(client, folder):
    fm.run(build_scenario(SMALL | {"auction": {"name": "pay-as-bid"}}), folder / "other")
    shown = client.get("/api/page?of=small&of=other").json()
    labels = [one["label"] for one in shown["inputs"]]
    assert any("pay-as-bid" in label for label in labels) and "other" not in labels
    assert {"side-run", "paired-run"} <= {table["id"] for table in shown["tables"]}


def test_a_page_is_made_again_only_when_a_file_has_changed(folder):
    pages = ResultPages(folder)
    first = pages.page(["small"])
    assert pages.page(["small"]) is first
    run = folder / "small" / "run.json"
    write_sealed(run, fm.read_run(run.parent) | {"outcome": "interrupted"})
    assert pages.page(["small"]) is not first


def test_wrong_names_get_a_sentence(folder):
    pages = ResultPages(folder)
    for names in ([], ["nothing"], ["small"] * (MOST_COMPARED + 1)):
        with pytest.raises(InputError):
            pages.page(names)


def test_a_damaged_result_gets_a_sentence(client, folder):
    for part in (folder / "small").glob("events/kind=round/*"):
        part.write_bytes(b"no Parquet")
    refused = client.get("/api/page", params={"of": "small"})
    assert refused.status_code == 400 and "is damaged" in refused.json()["error"]
