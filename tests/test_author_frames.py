"""Messages about failing plug-ins show the author's own lines, and nothing else."""

import sys

import numpy as np
import pytest

import flmarket_sim as fm
from flmarket_sim.author_frames import WHOLE, author_frames, described
from flmarket_sim.cli.app import main
from flmarket_sim.errors import ContractError, FlmarketError, InputError, plugin_errors
from flmarket_sim.experiments.engine import Guarded, results_of
from flmarket_sim.experiments.worker_processes import Processes
from flmarket_sim.plugins import registry
from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks
from flmarket_sim.studies.study_run import find_out

FAILS = """
import numpy as np
from flmarket_sim.aggregation.simple_rules import UniformWeights
from flmarket_sim.auctions.all_in import AllIn
from flmarket_sim.errors import InputError
from flmarket_sim.learning.synthetic import Synthetic
from flmarket_sim.perturbation.laplace import Laplace
from flmarket_sim.strategy.behaviours.distortions import Truthful


def deep(numbers):
    return np.zeros(3) + np.zeros(4)  # fails here


class Auction(AllIn):
    name = "my-auction"

    def __init__(self, least: float = 0.0) -> None:
        super().__init__()
        if least < 0:
            raise ValueError("least is negative")  # the constructor
        if least >= 1:
            raise InputError("least must be below 1")

    def decide(self, bids, budget, rng):
        return deep(bids)


class Rule(UniformWeights):
    name = "my-rule"

    def weights(self, *given, **others):
        return deep(given)


class Noise(Laplace):
    name = "my-noise"

    def release(self, *given, **others):
        return deep(given)


class Owner(Truthful):
    name = "my-owner"

    def report(self, *given, **others):
        return deep(given)


class Data(Synthetic):
    name = "my-data"

    def load(self, streams):
        return deep(streams)


class Counts(Synthetic):
    name = "my-counts"

    def class_counts(self, streams):
        return deep(streams)


class Value:
    name = "my-value"

    def value(self, privacy_loss):
        return deep(privacy_loss)

    def loss_for_money(self, money):
        return money


class Study:
    name = "my-study"

    def __init__(self, where: str = "measure") -> None:
        self.where = where

    def tasks(self, scenario):
        return deep(scenario) if self.where == "tasks" else [{"where": self.where}]

    @staticmethod
    def measure(scenario, work):
        return deep(work) if work["where"] == "measure" else []

    def conclude(self, scenario, results):
        return deep(results)
"""
LAST = "fails_on_purpose.py:12 in deep\n        return np.zeros(3) + np.zeros(4)  # fails here"


SMALL = {"data": {"name": "synthetic", "records": 4000}}


@pytest.fixture(autouse=True)
def failing(tmp_path, monkeypatch):
    (tmp_path / "fails_on_purpose.py").write_text(FAILS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv(WHOLE, raising=False)
    yield
    sys.modules.pop("fails_on_purpose", None)


def only_the_authors(text):
    """The message has the exception, the author's last line, and no other file."""
    assert "ValueError: operands could not be broadcast together" in text and LAST in text, text
    frames = [line for line in text.splitlines() if line.startswith("    ") and ".py:" in line]
    assert frames and all(line.startswith("    fails_on_purpose.py:") for line in frames), text


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"auction": "fails_on_purpose.py:Auction"}, "auction 'my-auction' failed"),
        ({"aggregation": "fails_on_purpose.py:Rule"}, "aggregation rule 'my-rule' failed"),
        ({"perturbation": "fails_on_purpose.py:Noise"}, "perturbation 'my-noise' failed"),
        ({"data": {"name": "fails_on_purpose.py:Data", "records": 4000}}, "data set 'fails_on"),
        ({"data": {"name": "fails_on_purpose.py:Counts", "records": 4000}}, "data set 'fails_on"),
        ({"owners__families": ["fails_on_purpose.py:Value"]}, "valuation family 'my-value' failed"),
        (
            {"owners__behaviours": [{"name": "fails_on_purpose.py:Owner", "share": 1.0}]},
            "behaviour 'my-owner' failed",
        ),
    ],
)
def test_a_failure_in_a_market_shows_where(tmp_path, changes, what):
    with pytest.raises(FlmarketError, match=what) as caught:
        fm.run("quickstart", tmp_path / "run", rounds=1, **(SMALL | changes))
    only_the_authors(str(caught.value))


@pytest.mark.parametrize("where", ["tasks", "measure", "conclude"])
def test_a_failure_in_a_study_shows_where(where):
    study = {"name": "fails_on_purpose.py:Study", "where": where}
    with pytest.raises(FlmarketError, match="study 'my-study' failed") as caught:
        find_out(fm.load_scenario("quickstart", study=study))
    only_the_authors(str(caught.value))


def test_a_constructor_shows_its_line_and_an_authors_own_message_stands_alone():
    with pytest.raises(InputError, match="cannot be made: ValueError: least is negative") as caught:
        registry.auctions.create("fails_on_purpose.py:Auction", least=-1.0)
    assert str(caught.value).endswith('raise ValueError("least is negative")  # the constructor')
    with pytest.raises(InputError, match=r"^least must be below 1$"):
        registry.auctions.create("fails_on_purpose.py:Auction", least=1.0)


def test_our_own_refusal_shows_the_authors_line_that_caused_it():
    where = r"test_author_frames.py:\d+ in test_our"
    with pytest.raises(InputError, match=where), plugin_errors("auction", "mine"):
        fm.Profiles(["linear"], [[np.nan]], [[1.0]], [[1.0]])


def test_a_failure_in_a_worker_process_shows_where():
    scenario = fm.load_scenario("quickstart")
    tasks = evaluation_tasks(["fails_on_purpose.py:Auction"], scenario, [1.0], 4, "opt-aggr", 0, 0)
    with pytest.raises(FlmarketError, match="at budget factor 1") as caught:
        results_of(tasks, evaluate, crew=Processes(1))
    only_the_authors(str(caught.value))


def fails(task):
    raise ContractError("no")


def test_the_variable_shows_everything(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv",
        ["flmarket", "run", "quickstart", "--set", "auction.name=fails_on_purpose.py:Auction"],
    )  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    only_the_authors(capsys.readouterr().err)
    monkeypatch.setenv(WHOLE, "1")
    with pytest.raises(ContractError):
        main()
    assert "in fails" in Guarded(fails)(None).message


def test_long_chains_and_hostile_texts_are_cut():
    def around(count):
        return around(count + 1)

    with pytest.raises(RecursionError) as caught:
        around(0)
    text = author_frames(caught.value)
    assert text.count("in around") == 7 and "more)" in text

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    assert described(Mute()) == "Mute: its text cannot be made"
    assert len(described(ValueError("x" * 10**6))) < 3_000
