"""Learned auctions say which error they were trained for, and where they meet another one."""

import json
from dataclasses import replace

import pytest

import flmarket_sim as fm
from flmarket_sim import training
from flmarket_sim.aggregation.market_error import coordinate_error, error_of_kappa
from flmarket_sim.auctions.learned import weight_files
from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.regime import Trained, regime_note
from flmarket_sim.errors import InputError
from tests.support.command_line import flmarket
from tests.support.paths import ROOT

MARKET = """
[owners]
count = 40
[market]
bidders = 4
[model]
name = "none"
dimension = 100
[perturbation]
name = "tests.perturbation.test_scenario_error:Fake"
factor = 50.0
[aggregation]
name = "opt-aggr"
error = "{error}"
"""


def papers_network(tmp_path):
    path = tmp_path / "w.safetensors"
    weight_files.save(path, weight_files.Learned(PaperNetwork(3, 1), "regretnet", False))
    return fm.auctions.create("regretnet", weights=str(path))


@pytest.mark.parametrize("name", ["regretnet", "seq-price"])
def test_weights_that_say_nothing_were_trained_for_the_papers_error(name, tmp_path):
    if name == "regretnet":
        auction = papers_network(tmp_path)
    else:
        path = with_kappa(tmp_path / "silent.safetensors", None)
        auction = fm.auctions.create(name, weights=str(path))
    assert isinstance(auction, Trained) and auction.trained_kappa == 8.0
    for near in (coordinate_error(3.0), error_of_kappa(4.0), error_of_kappa(16.0)):
        assert regime_note(auction, near) is None
    note = regime_note(auction, error_of_kappa(4920.0))
    assert f"{name} was trained for kappa = 8 (the paper's reading" in note
    assert "this market has kappa = 4920" in note and f"flmarket train {name}" in note
    assert ("It stays truthful" in note) == (name == "seq-price")
    assert "\n" not in note


def test_an_auction_that_was_not_trained_has_no_regime():
    assert regime_note(fm.auctions.create("all-in-critical"), error_of_kappa(4920.0)) is None


def with_kappa(path, kappa):
    learned = fm.auctions.create("seq-price").learned
    learned.facts.pop("kappas")
    learned.facts.pop("kappa")
    if kappa is not None:
        learned.facts["kappa"] = kappa
    weight_files.save(path, learned)
    return path


def test_the_shipped_weights_serve_a_range_of_regimes_and_say_where_it_ends():
    for name in ("seq-price", "dm-regretnet"):
        auction = fm.auctions.create(name)
        for kappa in (8.0, 300.0, 4920.0, 1e5):
            assert regime_note(auction, error_of_kappa(kappa)) is None
        assert "trained for kappa = 1e+05;" in regime_note(auction, error_of_kappa(1e6))


@pytest.mark.parametrize("kappas", [[8.0, 4.0], [0.0, 8.0], [8.0, float("inf")], ["a", "b"]])
def test_a_range_that_is_none_is_refused(tmp_path, kappas):
    learned = fm.auctions.create("seq-price").learned
    learned.facts["kappas"] = kappas
    weight_files.save(tmp_path / "w.safetensors", learned)
    with pytest.raises(InputError, match="does not hold the weights"):
        fm.auctions.create("seq-price", weights=str(tmp_path / "w.safetensors"))


def test_a_kappa_in_the_weights_is_read(tmp_path):
    path = with_kappa(tmp_path / "w.safetensors", 5000.0)
    auction = fm.auctions.create("seq-price", weights=str(path))
    assert auction.trained_kappa == 5000.0
    assert regime_note(auction, error_of_kappa(4920.0)) is None
    assert "trained for kappa = 5000;" in regime_note(auction, coordinate_error())


@pytest.mark.parametrize("kappa", [0.0, -1.0, float("nan"), "much"])
def test_a_kappa_that_is_none_is_refused(tmp_path, kappa):
    path = with_kappa(tmp_path / "w.safetensors", kappa)
    with pytest.raises(InputError, match="does not hold the weights"):
        fm.auctions.create("seq-price", weights=str(path))


@pytest.fixture
def market(tmp_path):
    def write(error):
        path = tmp_path / f"{error}.toml"
        path.write_text(MARKET.format(error=error))
        return str(path)

    return write


def command(*arguments):
    """The command line in a process that can import the tests."""
    result = flmarket(*arguments, env={"PYTHONPATH": str(ROOT)})
    assert result.returncode == 0, result.stderr
    return result


def test_evaluate_says_what_it_counted_and_what_was_trained_for_another_error(market, tmp_path):
    papers = with_kappa(tmp_path / "w.safetensors", 8.0)
    names, few = (f"seq-price@{papers}", "all-in-critical"), ("--budgets", "0.5", "--profiles", "4")
    shown = command("evaluate", *names, "--scenario", market("vector"), *few)
    said = " ".join(shown.stdout.split())
    assert "error: vector" in said and "kappa = 50" in said and "100 coordinates" in said
    assert "/floor" in said and "4 markets whose budgets are public" in said
    assert said.count("seq-price was trained for kappa = 8") == 1
    shown = command("evaluate", *names, "--scenario", market("coordinate"), *few, "--floor", "0")
    assert "error: coordinate" in shown.stdout
    assert "floor" not in shown.stdout
    assert "trained for" not in shown.stdout


def test_the_json_of_an_evaluation_has_the_regime(market):
    few = ("--budgets", "0.5", "--profiles", "4", "--json")
    shown = command("evaluate", "all-in-critical", "--scenario", market("vector"), *few)
    row = json.loads(shown.stdout)[0]
    assert row["over_floor"] > 0.5 and row["floor_profiles"] == 4
    assert (row["counted"], row["kappa"]) == ("vector", pytest.approx(50.0))


def test_probe_has_the_note_too(market, tmp_path):
    few = ("--profiles", "2", "--effort", "quick")
    papers = with_kappa(tmp_path / "w.safetensors", 8.0)
    shown = command("probe", f"seq-price@{papers}", "--scenario", market("vector"), *few)
    assert "seq-price was trained for kappa = 8" in " ".join(shown.stdout.split())


def test_a_training_writes_the_kappa_of_its_market(market, tmp_path):
    out = tmp_path / "trained.safetensors"
    settings = replace(training.preset("fast", "seq-price"), steps=2, markets=16, hidden=8)
    scenario = fm.load_scenario(market("vector"))
    training.train("seq-price", scenario, "opt-aggr", out, settings)
    auction = fm.auctions.create("seq-price", weights=str(out))
    assert auction.trained_kappa == pytest.approx(50.0)
    other = fm.load_scenario(market("coordinate"))
    with pytest.raises(InputError, match="must count the same error"):
        training.train("seq-price", scenario, "opt-aggr", out, settings, also=[other])
