"""The authors' classifier: softmax over sigmoids, from a random start."""

import numpy as np
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.errors import InputError
from flmarket_sim.learning import logistic
from flmarket_sim.learning.buyer_model import create_model
from flmarket_sim.learning.logistic import Logistic
from flmarket_sim.learning.sigmoid_logistic import SigmoidLogistic
from flmarket_sim.learning.torch_model import TorchModel
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Model
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.learning.test_models import data, one_by_one, owners  # noqa: F401


class SigmoidModule(torch.nn.Sequential):
    def __init__(self, features, classes):
        super().__init__(torch.nn.Linear(features, classes), torch.nn.Sigmoid())


def in_our_order(flat):
    """(7 x 3) weights and biases of a module, flat, in the order of our parameters."""
    return np.concatenate([flat[:18].reshape(3, 6).T, flat[18:][None]]).reshape(-1)


@pytest.mark.parametrize("chunk", [1, 50, 10**6])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_gradients_are_those_of_autograd(data, owners, chunk, scale, monkeypatch):  # noqa: F811
    monkeypatch.setattr(logistic, "CHUNK", chunk)
    model, module = SigmoidLogistic(6, 3), SigmoidModule(6, 3).double()
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(scale * torch.randn(p.shape, generator=torch.Generator().manual_seed(2)))
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()
    ours = model.gradients(in_our_order(flat), data, *owners)
    expected = np.stack([in_our_order(row) for row in one_by_one(module, data, *owners)])
    assert ours == pytest.approx(expected, abs=2e-6)
    assert np.abs(expected).max() > 1e-3


def test_it_evaluates_as_the_same_torch_module(data):  # noqa: F811
    theirs, ours = TorchModel(SigmoidModule, 6, 3, {}, seed=0), SigmoidLogistic(6, 3)
    flat = 4.0 * theirs.initial()
    a, b = theirs.evaluate(flat, data), ours.evaluate(in_our_order(flat), data)
    assert b.loss == pytest.approx(a.loss, rel=1e-5) and b.accuracy == a.accuracy
    assert b.recall == pytest.approx(a.recall)


def test_far_logits_give_finite_numbers_without_a_warning(data, recwarn):  # noqa: F811
    model = SigmoidLogistic(6, 3)
    far = np.full(model.dimension, -1e30)
    assert np.isfinite(model.gradients(far, data, np.arange(600), np.array([600]))).all()
    assert np.isfinite(model.evaluate(far, data).loss) and not recwarn.list


@pytest.mark.parametrize("cls", [Logistic, SigmoidLogistic])
def test_a_random_start_is_that_of_a_torch_layer(cls):
    model = cls(400, 5, start="random")
    model.draw_start(np.random.default_rng(0))
    start, layer = model.initial(), torch.nn.Linear(400, 5)
    drawn = torch.cat([layer.weight.flatten(), layer.bias]).detach().numpy()
    assert np.abs(start).max() <= 0.05 and np.abs(drawn).max() <= 0.05
    assert np.quantile(start, (0.1, 0.5, 0.9)) == pytest.approx(
        np.quantile(drawn, (0.1, 0.5, 0.9)), abs=0.006
    )


def test_starts_depend_on_seed_and_buyer_and_a_zero_start_on_nothing(data):  # noqa: F811
    def start(name, seed, buyer, **options):
        spec = Model(name=name, **options)
        return create_model(spec, data, Streams(seed), buyer).initial()

    first = start("sigmoid-logistic", 0, 0)
    assert (first == start("sigmoid-logistic", 0, 0)).all() and first.any()
    assert (first == start("logistic", 0, 0, start="random")).all(), "comparisons are paired"
    assert (first != start("sigmoid-logistic", 1, 0)).any()
    assert (first != start("sigmoid-logistic", 0, 1)).any()
    assert not start("logistic", 0, 0).any()
    assert not start("sigmoid-logistic", 0, 0, start="zero").any()


MARKET = {
    "data": {"name": "synthetic", "records": 2000},
    "owners": {"count": 20},
    "market": {"bidders": 5},
    "rounds": 3,
}


def test_a_scenario_names_it_and_the_run_says_so(tmp_path):
    accuracies = {}
    for name in ("logistic", "sigmoid-logistic"):
        scenario = build_scenario(MARKET | {"model": {"name": name}})
        run = fm.run(scenario, tmp_path / name)
        accuracies[name] = [row["accuracy"] for row in run.rounds.to_pylist()]
        assert run.summary()["models"] == {"buyer": name}
        assert fm.read_run(tmp_path / name)["scenario"]["model"]["name"] == name
    assert accuracies["logistic"] != accuracies["sigmoid-logistic"]


def test_an_unknown_start_is_refused():
    with pytest.raises(InputError, match="'zero' or 'random'"):
        build_scenario(MARKET | {"model": {"name": "logistic", "start": "one"}})
