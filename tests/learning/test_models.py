"""Gradients of many owners at once against autograd, one owner at a time."""

import numpy as np
import pytest
import torch

from flmarket_sim.errors import InputError
from flmarket_sim.learning import logistic
from flmarket_sim.learning.buyer_model import create_model
from flmarket_sim.learning.logistic import Logistic
from flmarket_sim.learning.torch_model import TorchModel
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Model


class TwoLayers(torch.nn.Module):
    def __init__(self, features, classes, hidden: int = 5):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(features, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, classes)
        )

    def forward(self, x):
        return self.layers(x)


class WithBatchNorm(TwoLayers):
    def __init__(self, features, classes):
        super().__init__(features, classes)
        self.norm = torch.nn.BatchNorm1d(features)


class OneLogit(torch.nn.Linear):
    def __init__(self, features, classes):
        super().__init__(features, 1)


class WithDropout(torch.nn.Linear):
    def forward(self, x):
        return torch.nn.functional.dropout(super().forward(x), training=True)


@pytest.fixture(scope="module")
def data():
    return registry.datasets.create(
        "synthetic", records=600, features=6, classes=3, test_records=200
    ).load(Streams(1))


@pytest.fixture
def owners():
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 33, 7, 100, 64])
    return rng.permutation(600)[: sizes.sum()], sizes


def one_by_one(module, data, rows, sizes):
    found, start = [], 0
    for size in sizes:
        mine = rows[start : start + size]
        start += size
        module.zero_grad()
        x, y = torch.tensor(data.train_x[mine]).double(), torch.tensor(data.train_y[mine])
        torch.nn.functional.cross_entropy(module(x), y).backward()
        found.append(torch.cat([p.grad.reshape(-1) for p in module.parameters()]).numpy())
    return np.stack(found)


@pytest.mark.parametrize("chunk", [1, 50, 10**6])
def test_logistic_gradients_are_those_of_autograd(data, owners, chunk, monkeypatch):
    monkeypatch.setattr(logistic, "CHUNK", chunk)
    model = Logistic(6, 3)
    parameters = np.random.default_rng(1).normal(size=model.dimension)
    module = torch.nn.Linear(6, 3).double()
    table = torch.tensor(parameters.reshape(7, 3))
    module.weight.data, module.bias.data = table[:-1].T.contiguous(), table[-1]
    expected = one_by_one(module, data, *owners)
    weights, bias = expected[:, :18].reshape(-1, 3, 6), expected[:, 18:]
    ours = model.gradients(parameters, data, *owners).reshape(-1, 7, 3)
    assert ours[:, :-1] == pytest.approx(weights.transpose(0, 2, 1), abs=2e-6)
    assert ours[:, -1] == pytest.approx(bias, abs=2e-6)


def test_any_module_gives_the_gradients_of_autograd(data, owners):
    model = TorchModel(TwoLayers, 6, 3, {"hidden": 4}, seed=3)
    ours = model.gradients(model.initial(), data, *owners)
    assert ours == pytest.approx(one_by_one(model.module, data, *owners), abs=1e-12)


def test_both_evaluate_alike(data):
    linear, own = TorchModel(torch.nn.Linear, 6, 3, {}, seed=0), Logistic(6, 3)
    flat = linear.initial()
    mine = np.concatenate([flat[:18].reshape(3, 6).T, flat[18:][None]]).reshape(-1)
    theirs, ours = linear.evaluate(flat, data), own.evaluate(mine, data)
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5) and ours.accuracy == theirs.accuracy
    assert ours.recall == pytest.approx(theirs.recall)


def test_a_step_against_the_gradient_lowers_the_loss(data):
    model, rows = Logistic(6, 3), np.arange(600)
    start = model.initial()
    stepped = start - 0.5 * model.gradients(start, data, rows, np.array([600]))[0]
    assert (
        model.evaluate(stepped, data).loss
        < model.evaluate(start, data).loss
        == pytest.approx(np.log(3), rel=1e-6)
    )


def test_a_model_starts_the_same_for_the_same_seed_only(data):
    spec = Model(name="tests.learning.test_models:TwoLayers")
    starts = [create_model(spec, data, Streams(seed), 0).initial() for seed in (0, 0, 1)]
    assert (starts[0] == starts[1]).all() and (starts[0] != starts[2]).any()


def test_what_cannot_be_a_model_is_refused(data):
    with pytest.raises(InputError, match="buffers"):
        TorchModel(WithBatchNorm, 6, 3, {}, seed=0)
    with pytest.raises(InputError, match="not a torch"):
        TorchModel(dict, 6, 3, {}, seed=0)
    for cls, message in (
        (torch.nn.ReLU, "cannot be built"),
        (torch.nn.Identity, "no parameters"),
        (torch.nn.Embedding, "does not work"),
        (OneLogit, r"must map \(records, 6\) to \(records, 3\) logits, but gives \(3, 1\)"),
        (WithDropout, "does not work"),
    ):
        with pytest.raises(InputError, match=message):
            TorchModel(cls, 6, 3, {}, seed=0)


def test_class_weights_count_a_record_as_often_as_they_say():
    data = registry.datasets.create("synthetic", records=60, features=4, classes=3).load(Streams(0))
    rows, sizes = np.arange(30), np.array([10, 20])
    parameters = np.random.default_rng(0).normal(size=15)
    weights = [1.0, 2.0, 3.0]
    weighted = Logistic(4, 3, class_weights=weights).gradients(parameters, data, rows, sizes)
    plain, begin = Logistic(4, 3), 0
    for owner, size in enumerate(sizes):
        each = [
            weights[data.train_y[row]]
            * plain.gradients(parameters, data, np.array([row]), np.array([1]))[0]
            for row in rows[begin : begin + size]
        ]
        np.testing.assert_allclose(weighted[owner], np.mean(each, axis=0), atol=1e-6)
        begin += size
    for wrong in ([1.0], [1.0, 0.0, 2.0], [1.0, float("inf"), 1.0]):
        with pytest.raises(InputError, match="class_weights"):
            Logistic(4, 3, class_weights=wrong)
