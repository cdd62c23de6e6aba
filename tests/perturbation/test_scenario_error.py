"""The error of a scenario: what it is of, under which noise, in how many coordinates."""

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.learning.buyer_model import NoModel
from flmarket_sim.learning.dataset import KnownShape, load_data
from flmarket_sim.learning.model_dimension import data_shape, model_dimension
from flmarket_sim.paper.paper_market import PaperMarket
from flmarket_sim.perturbation.scenario_error import error_settings, scenario_error
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.scenario.scenario_file import parse_scenario
from flmarket_sim.studies.evaluation import evaluate, evaluation_tasks, scores

FAKE = "tests.perturbation.test_scenario_error:Fake"


class Fake:
    """Noise of variance `factor` on every coordinate of a box."""

    name = "fake"
    domain = "linf"

    def __init__(self, factor: float = 3.0) -> None:
        self.factor = factor

    def prepare(self, gradients, clip=1.0):
        return np.clip(gradients, -clip, clip)

    def release(self, gradients, privacy_loss, rng, clip=1.0):
        return gradients

    def variance(self, privacy_loss, dimension, clip=1.0):
        with np.errstate(divide="ignore"):
            return self.factor * dimension * clip**2 / np.asarray(privacy_loss)


class Small(torch.nn.Sequential):
    """A torch model: features -> 3 -> classes."""

    def __init__(self, features, classes):
        super().__init__(torch.nn.Linear(features, 3), torch.nn.Linear(3, classes))


def scenario(**changes):
    text = f"""
rounds = 1
[owners]
count = 40
[market]
bidders = 4
[privacy]
clip = 2.0
[data]
name = "synthetic"
features = 7
classes = 3
records = 2000
[perturbation]
name = "{FAKE}"
[aggregation]
name = "opt-aggr"
error = "vector"
"""
    return parse_scenario(text, changes=changes)


def test_the_papers_reading_needs_no_perturbation_and_no_dimension():
    error = scenario_error(scenario(aggregation__error="coordinate"))
    assert (error.kind, error.radius, error.kappa) == ("coordinate", 2.0, 8.0)


def test_a_vector_has_the_variance_of_all_coordinates_of_the_buyers_model():
    error = scenario_error(scenario())
    assert error.variance(np.array([0.5, 0.0])).tolist() == [3.0 * 24 * 4.0 / 0.5, np.inf]
    assert error.radius == pytest.approx(2.0 * np.sqrt(24))  # of a box
    assert scenario_error(scenario(perturbation__factor=6.0)).kappa == pytest.approx(
        2 * error.kappa
    )


def test_each_buyer_has_the_error_of_her_own_model():
    both = scenario(
        buyers=[{"name": "one"}, {"name": "other", "model": {"name": "none", "dimension": 650}}]
    )
    one, other = both.resolved_buyers()
    assert error_settings(both, other).dimension == 650
    assert error_settings(both, one).dimension == error_settings(both).dimension == 24


def test_a_dimension_that_is_known_is_taken():
    assert error_settings(scenario(), dimension=5).dimension == 5


@pytest.mark.parametrize(
    ("model", "coordinates"),
    [
        ({"name": "logistic"}, 24),
        ({"name": "sigmoid-logistic"}, 24),
        ({"name": "none"}, 1),
        ({"name": "none", "dimension": 650}, 650),
        ({"name": "tests.perturbation.test_scenario_error:Small"}, 8 * 3 + 4 * 3),
    ],
)
def test_the_dimension_is_that_of_the_model(model, coordinates):
    assert model_dimension(scenario(model=model)) == coordinates


def test_every_buyer_has_the_error_of_her_own_model_and_rule():
    both = scenario(
        buyers=[
            {"name": "one", "model": {"name": "none", "dimension": 9}},
            {"name": "two", "aggregation": {"name": "opt-aggr", "error": "coordinate"}},
        ]
    )
    kinds = [error_settings(both, buyer) for buyer in both.resolved_buyers()]
    assert [(k.kind, k.dimension) for k in kinds] == [("vector", 9), ("coordinate", 1)]


@pytest.mark.parametrize("name", ["digits", "nsl-kdd", "bank", "synthetic"])
def test_shipped_data_know_their_shape(name):
    source = registry.datasets.create(name)
    assert isinstance(source, KnownShape)
    try:
        data = load_data(scenario(data={"name": name}))
    except FlmarketError:
        pytest.skip(f"the files of {name} are not here")
    assert source.shape() == (data.train_x.shape[1], len(data.classes))
    assert data_shape(scenario(data={"name": name})) == source.shape()


def test_a_market_without_learning_has_at_least_one_coordinate():
    assert NoModel(3, 2).dimension == 1 and NoModel(3, 2, 7).dimension == 7
    with pytest.raises(InputError, match="dimension must be at least 1, got 0"):
        NoModel(3, 2, 0)
    with pytest.raises(fm.errors.ScenarioError, match="dimension"):
        scenario(model={"name": "none", "dimension": 0})


def test_a_market_of_the_paper_keeps_the_error_under_every_rule():
    market = PaperMarket(name="iid", partition=Plugin(name="iid"))
    for kind in ("coordinate", "vector"):
        changed = market.of(scenario(aggregation__error=kind), aggregation={"name": "convl-aggr"})
        assert (changed.aggregation.name, changed.aggregation.error) == ("convl-aggr", kind)


def evaluated(**changes):
    tasks = evaluation_tasks(
        ["all-in-critical"], scenario(**changes), [0.5], 20, "opt-aggr", 0, seed=1
    )
    return tasks, scores(tasks, [evaluate(task) for task in tasks])[0]


def test_an_evaluation_counts_the_error_of_the_scenario():
    tasks, paper = evaluated(aggregation__error="coordinate")
    assert (paper.counted, paper.kappa) == ("coordinate", 8.0)
    assert "coordinate, the paper's reading" in tasks[0].error.sentence()
    others, whole = evaluated()
    assert (whole.counted, whole.kappa) == ("vector", pytest.approx(3.0))  # 3 D clip^2 / D clip^2
    assert "24 coordinates" in others[0].error.sentence()
    assert whole.error_bound != paper.error_bound
    assert whole.ratio >= 1.0 - 1e-9 and paper.ratio >= 1.0 - 1e-9
    keys = {tasks[0].key, others[0].key, evaluated(perturbation__factor=4.0)[0][0].key}
    keys |= {evaluated(model={"name": "none", "dimension": 8})[0][0].key}
    assert len(keys) == 4
