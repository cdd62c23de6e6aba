"""A run as an object: what a notebook or a script has in hand after `fm.run`."""

import os
import pickle
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pytest

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError, ScenarioError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.report.html import page
from flmarket_sim.studies.study import Finding, Plot
from flmarket_sim.testing import check_auction
from tests.support.paths import ROOT

SMALL = {"rounds": 2, "owners__count": 30, "model": "none"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fm.run("quickstart", tmp_path_factory.mktemp("run") / "small", **SMALL)


def test_a_run_is_named_by_a_path_a_shipped_name_or_a_scenario(run, tmp_path):
    from_file = fm.run(ROOT / "scenarios" / "quickstart.toml", tmp_path / "file", **SMALL)
    scenario = fm.load_scenario("quickstart", **SMALL)
    from_object = fm.run(scenario, tmp_path / "object")
    assert from_file.info["log"] == from_object.info["log"] == run.info["log"]
    longer = fm.run(scenario, tmp_path / "changed", rounds=3)
    assert len(longer.rounds) == 3 and longer.info["scenario"]["owners"]["count"] == 30


def test_no_loaded_data_is_no_change_of_the_scenario(tmp_path):
    scenario = fm.Scenario(data={"name": "synthetic", "records": 2000}, rounds=1, model="none")
    one = fm.run(scenario, tmp_path / "run", data=None)
    assert one.info["scenario_sha256"] == scenario.digest()


def test_without_a_directory_a_run_goes_where_the_command_line_puts_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario = fm.load_scenario("quickstart", **SMALL)
    first, second = fm.run(scenario), fm.run(scenario)
    name = f"runs/quickstart-{scenario.digest()[:8]}"
    assert (str(first), str(second)) == (name, f"{name}.2")


def test_changes_are_those_of_the_command_line():
    by_text = fm.load_scenario("quickstart", ["rounds=7", "owners.count=30", "auction.name=all-in"])
    by_keyword = fm.load_scenario("quickstart", rounds=7, owners__count=30, auction="all-in")
    assert by_text == by_keyword
    with pytest.raises(ScenarioError, match="did you mean 'rounds'"):
        fm.run("quickstart", "never", round=3)
    assert not os.path.exists("never")


def test_a_run_can_be_passed_wherever_a_path_can(run, tmp_path):
    assert os.fspath(run) == str(run.path) == str(run)
    assert fm.read_run(run) == run.info and fm.Run(run).path == run.path
    assert fm.read_owners(run).num_rows == 30 == fm.read_ledger(run).num_rows
    assert fm.sql(run, "select count(*) as n from bid").to_pylist() == [{"n": 60}]
    assert fm.write_view(run, "broker", tmp_path / "view")["view"] == "broker"
    assert fm.resume(run).info == run.info
    assert page.write([run], tmp_path / "page.html", False).is_file()
    assert pickle.loads(pickle.dumps(run)).info == run.info


def test_the_tables_of_a_run_are_those_of_its_log(run):
    assert run.events("bid").arrow.equals(fm.read_events(run, "bid"))
    assert run.rounds.arrow.equals(fm.read_events(run, "round"))
    assert run.owners.arrow.equals(fm.read_owners(run))
    assert run.ledger.arrow.equals(fm.read_ledger(run))
    asked = run.sql("select round, count(*) as bids from bid group by round order by round")
    assert asked.to_pylist() == [{"round": 0, "bids": 30}, {"round": 1, "bids": 30}]
    assert run.summary()["buyers"]["buyer"]["rounds"] == len(run.rounds) == 2


def test_a_table_shows_its_first_rows_and_is_arrow_to_everybody_else(run):
    bids = run.events("bid")
    assert len(repr(run.owners).splitlines()) == 22 and "10 of them not shown" in repr(run.owners)
    assert repr(bids).splitlines()[0].split()[:2] == ["seq", "time"]
    assert "<td>linear</td>" in bids._repr_html_() and "60 rows" in bids._repr_html_()
    assert pa.table(bids).equals(bids.arrow) and bids["seq"].equals(bids.column("seq"))
    assert bids.num_rows == len(bids) == len(pickle.loads(pickle.dumps(bids)))


def test_a_table_converts_to_pandas_or_says_what_to_install(run):
    if find_spec("pandas") is not None:
        assert list(run.rounds.to_pandas()["round"]) == [0, 1]
        return
    with pytest.raises(FlmarketError, match="pip install pandas"):
        run.rounds.to_pandas()


def test_a_run_describes_itself(run):
    assert "quickstart: finished" in repr(run) and str(run.path) in repr(run)
    assert "quickstart: finished" in run._repr_html_() and "<td>buyer</td>" in run._repr_html_()


def test_only_the_directory_of_a_run_is_a_run(tmp_path):
    with pytest.raises(InputError, match="not the directory of a run"):
        fm.Run(tmp_path)


def test_dir_shows_the_public_names_only():
    assert dir(fm) == sorted(fm.__all__)
    with pytest.raises(AttributeError, match="no attribute 'simulate'"):
        fm.simulate  # noqa: B018


def test_large_results_have_a_repr_of_one_line():
    truth = fm.draw_profiles(fm.load_scenario("paper/iid"), 4)
    auction, money = fm.auctions.create("all-in"), truth.total_value() / 2
    outcome = auction.decide(truth.bids(), money, np.random.default_rng(0))
    results = (
        truth,
        truth.bids(),
        outcome,
        fm.strategy.probe(auction, truth, money, effort="quick"),
        check_auction(auction, markets=5, raise_on_failure=False),
        Finding([{"a": 1}], Plot("a", "b", "c", "x", "y"), ["Nobody gains."]),
        Dataset(*2 * (np.zeros((9, 3)), np.zeros(9, int)), ("a", "b")),
        fm.load_sweep("studies/sweep-auctions"),
    )
    for result in results:
        text = repr(result)
        assert text.startswith(f"<{type(result).__name__} ") and len(text) < 160, text
        assert "\n" not in text
