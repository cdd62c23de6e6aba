"""Owners who train locally send what a loop over owners and steps gives."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import flmarket_sim as fm
from flmarket_sim.errors import DataError, InputError
from flmarket_sim.eventlog import read_events, write_view
from flmarket_sim.learning import local_training
from flmarket_sim.learning.buyer_model import TrainsLocally, create_model
from flmarket_sim.learning.local_training import draw_batches, owner_updates, processed_records
from flmarket_sim.learning.logistic import Logistic
from flmarket_sim.learning.sigmoid_logistic import SigmoidLogistic
from flmarket_sim.learning.torch_model import TorchModel
from flmarket_sim.market.simulation import rounds_only
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Learning, Model
from flmarket_sim.scenario.scenario_file import build_scenario
from tests.learning.local_twin import local_changes
from tests.learning.test_models import TwoLayers, data, owners  # noqa: F401

MODELS = {
    "logistic": lambda: Logistic(6, 3),
    "sigmoid-logistic": lambda: SigmoidLogistic(6, 3),
    "two layers": lambda: TorchModel(TwoLayers, 6, 3, {"hidden": 4}, seed=3),
}
WHO = np.array([5, 0, 17, 3, 900, 40])


def local(steps=4, learning_rate=0.3, batch=None):
    return Learning(update="local", steps=steps, learning_rate=learning_rate, batch=batch)


def start_of(model):
    return np.random.default_rng(1).normal(scale=0.4, size=model.dimension)


@pytest.mark.parametrize("elements", [1, 2**20])
@pytest.mark.parametrize("batch", [None, 1, 5, 40, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_all_owners_together_send_what_each_would_send_alone(
    data,  # noqa: F811
    owners,  # noqa: F811
    name,
    batch,
    elements,
    monkeypatch,
):
    monkeypatch.setattr(local_training, "ELEMENTS", elements)
    model, spec = MODELS[name](), local(batch=batch)
    start, rest = start_of(model), (Streams(7), WHO, 11, 2)
    ours = owner_updates(model, spec, start, data, *owners, *rest)
    expected = local_changes(model, spec, start, data, *owners, *rest)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=3e-6)
    assert np.abs(expected).max(axis=1).min() > 1e-3
    if name == "two layers":  # in float64
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_is_sent_as_before_and_one_step_on_all_records_is_a_multiple_of_it(
    data,  # noqa: F811
    owners,  # noqa: F811
    name,
):
    model = MODELS[name]()
    start, rest = start_of(model), (Streams(0), WHO, 0, 0)
    gradients = model.gradients(start, data, *owners)
    sent = owner_updates(model, Learning(), start, data, *owners, *rest)
    np.testing.assert_array_equal(sent, gradients)
    one = owner_updates(model, local(steps=1), start, data, *owners, *rest)
    np.testing.assert_allclose(one, 0.3 * gradients, rtol=0, atol=1e-6)


def test_what_an_owner_sends_does_not_depend_on_the_others(data, owners):  # noqa: F811
    model, spec, (rows, sizes) = Logistic(6, 3), local(batch=9), owners
    rest = (Streams(7), WHO, 4, 1)
    together = owner_updates(model, spec, start_of(model), data, rows, sizes, *rest)
    for i, end in enumerate(np.cumsum(sizes)):
        alone = owner_updates(
            model,
            spec,
            start_of(model),
            data,
            rows[end - sizes[i] : end],
            sizes[i : i + 1],
            Streams(7),
            WHO[i : i + 1],
            4,
            1,
        )
        np.testing.assert_allclose(alone[0], together[i], rtol=0, atol=1e-6)


def test_batches_differ_by_owner_round_buyer_and_seed(data):  # noqa: F811
    model, spec = Logistic(6, 3), local(batch=3)

    def sent(seed=0, owner=1, number=2, buyer=0):
        rest = (Streams(seed), np.array([owner]), number, buyer)
        rows, sizes = np.arange(60), np.array([60])
        return owner_updates(model, spec, model.initial(), data, rows, sizes, *rest)

    first = sent()
    np.testing.assert_array_equal(first, sent())
    for other in (sent(seed=1), sent(owner=2), sent(number=3), sent(buyer=1)):
        assert np.abs(other - first).max() > 1e-4


def test_a_batch_has_different_records_and_every_record_is_drawn_equally_often():
    drawn = draw_batches(np.random.default_rng(0), 10, 20_000, 3)
    assert drawn.shape == (20_000, 3)
    assert all(len(set(step)) == 3 for step in drawn[:2000].tolist())
    share = np.bincount(drawn.reshape(-1), minlength=10) / 20_000
    assert share == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / 20_000))
    few = draw_batches(np.random.default_rng(0), 10, 5, 3)
    np.testing.assert_array_equal(few, drawn[:5], "more steps do not change the first ones")
    whole = draw_batches(np.random.default_rng(0), 10, 2, 10)
    assert whole.tolist() == [list(range(10))] * 2


@pytest.mark.parametrize("name", MODELS)
def test_every_built_in_model_and_every_module_can_train_locally(name):
    assert isinstance(MODELS[name](), TrainsLocally)


class OnlyGradients:
    """A model without the ability."""

    name = "only-gradients"

    def __init__(self, features: int, classes: int) -> None:
        self.dimension = features * classes

    def initial(self):
        return np.zeros(self.dimension)

    def gradients(self, parameters, records, rows, sizes):
        return np.ones((len(sizes), self.dimension))

    def evaluate(self, parameters, records): ...


SMALL = {
    "rounds": 3,
    "data": {"name": "synthetic", "records": 600, "features": 4, "classes": 3, "test_records": 50},
    "owners": {"count": 24},
    "market": {"bidders": 6},
    "perturbation": {"name": "laplace"},
    "learning": {"update": "local", "steps": 3},
}


def test_a_model_that_cannot_train_locally_is_refused_before_the_run(data):  # noqa: F811
    registry.models.register(OnlyGradients)
    for tables, path in (
        ({"model": {"name": "only-gradients"}}, r"model\.name"),
        (
            {"buyers": [{"name": "a"}, {"name": "b", "model": {"name": "only-gradients"}}]},
            r"buyers\[1\]\.model\.name",
        ),
    ):
        with pytest.raises(InputError, match=rf"{path}: model 'only-gradients' cannot train"):
            build_scenario(SMALL | tables)
        build_scenario(SMALL | tables | {"learning": {"update": "gradient"}})
    model = OnlyGradients(6, 3)
    rest = (np.arange(5), np.array([5]), Streams(0), np.array([0]), 0, 0)
    with pytest.raises(InputError, match="cannot train"):
        owner_updates(model, local(), model.initial(), data, *rest)


class Steep(torch.nn.Linear):
    """Its loss is so steep that steps only make it steeper."""

    def forward(self, x):
        return super().forward(x) ** 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("update", [local(), Learning()])
def test_a_model_that_overflows_is_no_error(data, owners, name, update):  # noqa: F811
    model = MODELS[name]()
    found = owner_updates(
        model, update, np.full(model.dimension, 1e300), data, *owners, Streams(7), WHO, 11, 2
    )
    assert found.shape == (len(WHO), model.dimension)


@pytest.mark.filterwarnings("error")
def test_local_models_that_overflow_are_known_to_their_owners_alone(tmp_path):
    """A market that stopped would tell everybody about one owner's records."""
    model = {"name": "tests.learning.test_local_training:Steep"}
    learning = {"update": "local", "steps": 60, "learning_rate": 1e6}
    scenario = build_scenario(SMALL | {"model": model, "learning": learning})
    run = fm.run(scenario, tmp_path / "run")
    sent = run.events("gradient")
    finite = np.array(sent.column("finite").to_pylist())
    assert not finite.any() and len(finite) > 5
    assert all(sent.column("clipped").to_pylist())
    assert (np.array(sent.column("norm")) == np.inf).all()
    assert any(row["valid"] for row in run.rounds.to_pylist())
    for viewer in ("broker", "buyer"):
        write_view(run.path, viewer, tmp_path / viewer)
        events = tmp_path / viewer / "events" / "kind=gradient" / "part-00000.parquet"
        assert not events.exists() or "finite" not in pq.read_schema(events).names
    write_view(run.path, f"owner:{sent.column('sender')[0].as_py()}", tmp_path / "owner")
    own = read_events(tmp_path / "owner", "gradient").column("finite").to_pylist()
    assert own and not any(own)


def test_the_mean_of_one_owners_model_is_her_model(data):  # noqa: F811
    """FedAvg with one owner is plain training on her records."""
    model, spec = Logistic(6, 3), local(steps=7)
    rest = (np.arange(50), np.array([50]), Streams(0), np.array([0]), 0, 0)
    sent = owner_updates(model, spec, model.initial(), data, *rest)[0]
    average = registry.optimizers.get("average")(model.dimension)
    mine = model.initial()
    for _ in range(7):
        mine -= 0.3 * model.gradients(mine, data, np.arange(50), np.array([50]))[0]
    moved = average.step(model.initial(), sent, learning_rate=0.001)
    np.testing.assert_allclose(moved, mine, rtol=0, atol=1e-6)


def test_local_training_takes_the_time_of_its_records():
    sizes = np.array([4.0, 10.0, 100.0])
    assert processed_records(Learning(), sizes).tolist() == [4, 10, 100]
    assert processed_records(local(steps=3), sizes).tolist() == [12, 30, 300]
    assert processed_records(local(steps=3, batch=10), sizes).tolist() == [12, 30, 30]
    slow = SMALL | {
        "owners": {"count": 24, "records_per_second": 10.0},
        "market": {"bidders": 6, "delay": {"name": "constant", "seconds": 0.0}},
    }
    ended = [
        rounds_only(build_scenario(slow | {"learning": learning}))[0]["ended"]
        for learning in ({}, {"update": "local", "steps": 10}, {"update": "local", "batch": 1})
    ]
    assert ended[1] == pytest.approx(10 * ended[0])
    assert ended[2] == pytest.approx(10 * 1 / 10.0)


def test_more_local_steps_teach_more_in_one_round():
    """A market that hears everybody with little noise learns faster by local steps."""
    rich = SMALL | {
        "rounds": 4,
        "privacy": {"clip": 20.0},
        "owners": {"count": 12, "privacy_budget": 300.0, "families": ["linear"]},
        "market": {"bidders": 12},
        "budget": {"factor": 3.0},
        "aggregation": {"name": "convl-aggr", "error": "coordinate"},
        "model": {"name": "logistic", "optimizer": "average"},
    }
    losses = [
        rounds_only(build_scenario(rich | {"learning": SMALL["learning"] | {"steps": steps}}))[-1][
            "loss"
        ]
        for steps in (1, 5, 25)
    ]
    assert losses[0] > losses[1] > losses[2]


@pytest.mark.parametrize("name", ["nsl-kdd", "bank"])
def test_real_data_trains_locally(name):
    scenario = build_scenario(
        {
            "rounds": 2,
            "data": {"name": name},
            "owners": {"count": 50},
            "market": {"bidders": 5},
            "perturbation": {"name": "laplace"},
            "learning": {"update": "local", "steps": 3, "batch": 20},
            "model": {"name": "logistic", "optimizer": "average"},
        }
    )
    try:
        records = fm.load_data(scenario)
    except DataError as error:
        pytest.skip(f"the data set is not here: {error}")
    assert all(np.isfinite(row["loss"]) for row in rounds_only(scenario, records))
    model = create_model(Model(name="logistic"), records, Streams(0), 0)
    rest = (np.arange(400), np.array([300, 20, 80]), Streams(0), np.array([1, 2, 3]), 0, 0)
    ours = owner_updates(model, local(batch=50), model.initial(), records, *rest)
    expected = local_changes(model, local(batch=50), model.initial(), records, *rest)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5)
