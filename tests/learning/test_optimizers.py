"""Optimizers: steps as torch takes them, and states from which they continue to the same bits."""

import inspect

import numpy as np
import pytest
import torch

from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.learning.optimizers import checked_step, create_optimizer
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.scenario.scenario_file import build_scenario

D = 7


def updates(count=40, seed=0):
    """Updates and learning rates of some rounds."""
    rng = np.random.default_rng(seed)
    return list(zip(rng.normal(size=(count, D)), rng.uniform(0.001, 0.1, count), strict=True))


def steps(optimizer, start, given):
    path = [start]
    for update, rate in given:
        path.append(optimizer.step(path[-1], update, rate))
    return np.array(path)


def torch_steps(cls, start, given, **options):
    """torch.optim itself, on one parameter."""
    parameter = torch.nn.Parameter(torch.tensor(start))
    optimizer, path = cls([parameter], lr=1.0, **options), [start]
    for update, rate in given:
        optimizer.param_groups[0]["lr"] = float(rate)
        parameter.grad = torch.tensor(update)
        optimizer.step()
        path.append(parameter.detach().numpy().copy())
    return np.array(path)


def made(name, **options):
    return create_optimizer(Plugin(name=name, **options), D)


START = np.linspace(-1.0, 1.0, D)
TWINS = [
    ("sgd", {}, torch.optim.SGD, {}),
    ("momentum", {}, torch.optim.SGD, {"momentum": 0.9}),
    ("momentum", {"momentum": 0.5}, torch.optim.SGD, {"momentum": 0.5}),
    ("momentum", {"nesterov": True}, torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    ("adam", {}, torch.optim.Adam, {}),
    ("adam", {"betas": [0.7, 0.9]}, torch.optim.Adam, {"betas": (0.7, 0.9)}),
    ("adam", {"eps": 1e-3}, torch.optim.Adam, {"eps": 1e-3}),
]


@pytest.mark.parametrize(("name", "options", "cls", "theirs"), TWINS)
def test_the_plain_optimizers_step_as_those_of_torch(name, options, cls, theirs):
    ours = steps(made(name, **options), START, updates())
    np.testing.assert_allclose(
        ours, torch_steps(cls, START, updates(), **theirs), rtol=0, atol=1e-12
    )


def test_sgd_is_exactly_a_step_against_the_update():
    for update, rate in updates():
        np.testing.assert_array_equal(made("sgd").step(START, update, rate), START - rate * update)


def test_the_average_ignores_the_learning_rate():
    for update, rate in updates(3):
        np.testing.assert_array_equal(made("average").step(START, update, rate), START - update)


@pytest.mark.parametrize("name", registry.TORCH_OPTIMIZERS)
def test_an_optimizer_of_torch_is_that_optimizer(name):
    cls = getattr(torch.optim, name)
    ours = steps(made(name), START, updates())
    np.testing.assert_array_equal(ours, torch_steps(cls, START, updates()))
    assert registry.optimizers.describe(name).startswith(f"torch.optim.{name}")


def test_options_reach_the_optimizer_of_torch():
    for name, options, theirs in (
        ("RMSprop", {"alpha": 0.5, "momentum": 0.3, "centered": True}, None),
        ("AdamW", {"betas": [0.5, 0.6], "weight_decay": 0.1}, {"betas": (0.5, 0.6)}),
        ("Rprop", {"etas": [0.4, 1.3]}, {"etas": (0.4, 1.3)}),
        ("Adagrad", {"initial_accumulator_value": 2.0}, None),
    ):
        ours = steps(made(name, **options), START, updates(10))
        expected = torch_steps(
            getattr(torch.optim, name), START, updates(10), **(options | (theirs or {}))
        )
        np.testing.assert_array_equal(ours, expected)


def test_every_optimizer_of_torch_is_offered_or_refused_with_a_reason():
    theirs = {
        name
        for name, cls in vars(torch.optim).items()
        if inspect.isclass(cls) and issubclass(cls, torch.optim.Optimizer) and name != "Optimizer"
    }
    assert theirs == {*registry.TORCH_OPTIMIZERS, *registry.UNFIT["optimizer"]}
    for name, reason in registry.UNFIT["optimizer"].items():
        with pytest.raises(InputError, match=f"'{name}' is of no use here: {reason}"):
            registry.optimizers.get(name)


@pytest.mark.parametrize("taken", [0, 1, 13])
@pytest.mark.parametrize("name", sorted(registry.BUILT_IN["optimizer"]))
def test_an_optimizer_goes_on_from_its_state_to_the_same_bits(name, taken):
    given = updates()
    before, after = made(name), made(name)
    middle = steps(before, START, given[:taken])[-1]
    state = {key: array.copy() for key, array in before.state().items()}
    assert all(array.dtype == np.float64 for array in state.values())
    after.restore(state)
    np.testing.assert_array_equal(
        steps(after, middle, given[taken:]), steps(before, middle, given[taken:])
    )
    assert state.keys() == after.state().keys() or taken == 0


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "RMSprop", "Rprop", "SGD", "ASGD"])
def test_a_state_that_is_not_its_own_is_refused(name):
    optimizer = made(name, **({"momentum": 0.9} if name == "SGD" else {}))
    steps(optimizer, START, updates(3))
    state = optimizer.state()
    wrong = [state | {"another": np.zeros(D)}]
    for key, array in state.items():
        wrong += [
            {other: a for other, a in state.items() if other != key},
            state | {key: np.zeros((2, *array.shape))},
            state | {key: array.astype(np.float32)},
            state | {key: np.full_like(array, np.nan)},
        ]
    if "steps" in state:
        wrong += [state | {"steps": np.array([number])} for number in (-1.0, 0.5)]
    for damaged in wrong:
        with pytest.raises((ValueError, KeyError)):
            made(name, **({"momentum": 0.9} if name == "SGD" else {})).restore(damaged)


class Grows:
    """A plug-in that breaks the contract."""

    name = "grows"

    def __init__(self, dimension: int) -> None: ...

    def step(self, parameters, update, learning_rate):
        return np.append(parameters, 0.0)

    def state(self):
        return {}

    def restore(self, state): ...


def test_a_plug_in_that_changes_the_shape_is_named():
    with pytest.raises(ContractError, match=r"'grows' made parameters of shape \(8,\)"):
        checked_step(Grows(D), START, START, 0.1)
    name = "tests.learning.test_optimizers:Grows"
    assert build_scenario({"model": {"optimizer": name}}).model.optimizer.name == name


@pytest.mark.parametrize("buyers", [False, True])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"optimizer": "momentun"}, r"model\.optimizer\.name: unknown .* mean 'momentum'\?"),
        ({"optimizer": "rmsprop"}, r"model\.optimizer\.name: unknown .* mean 'RMSprop'\?"),
        ({"optimizer": {"name": "LBFGS"}}, r"model\.optimizer\.name: optimizer 'LBFGS' is of no"),
        ({"optimizer": {"name": "adam", "beta": 1}}, r"optimizer\.beta: .* mean 'betas'\?"),
        ({"optimizer": {"name": "adam", "betas": [0.5, 1.0]}}, r"optimizer\.betas\[1\]: .*less"),
        ({"optimizer": {"name": "RMSprop", "alfa": 0.5}}, r"optimizer\.alfa: .* mean 'alpha'\?"),
        ({"optimizer": {"name": "RMSprop", "alpha": -1.0}}, "RMSprop' cannot be made: .*alpha"),
        ({"optimizer": {"name": "RMSprop", "lr": 0.1}}, r"optimizer\.lr: .*no such option"),
        ({"optimizer": {"momentum": 0.5}}, r"optimizer\.momentum: 'sgd' has no such option"),
        ({"optimizer": 5}, r"model\.optimizer: .*\(got 5\)"),
        ({"schedule": "cosin"}, r"model\.schedule\.name: unknown schedule .* mean 'cosine'\?"),
        ({"schedule": {"name": "cosine", "final": 2.0}}, r"model\.schedule\.final: .*\(got 2\.0\)"),
        ({"schedule": "step"}, r"model\.schedule\.every: field required"),
        ({"averaging": 1.5}, r"model\.averaging: .*less than or equal to 1"),
    ],
)
def test_wrong_tables_of_a_model_are_errors_with_their_place(model, message, buyers):
    tables = {"buyers": [{"name": "anna", "model": model}]} if buyers else {"model": model}
    with pytest.raises(InputError, match=message) as error:
        build_scenario(tables)
    assert ("buyers[0].model" in str(error.value)) == buyers


def test_a_text_is_a_name_and_a_buyer_adds_to_the_tables_of_the_scenario():
    scenario = build_scenario(
        {
            "model": {
                "learning_rate": 0.5,
                "optimizer": {"name": "momentum", "nesterov": True},
                "schedule": "cosine",
            },
            "buyers": [
                {"name": "a"},
                {"name": "b", "model": {"optimizer": {"momentum": 0.5}}},
                {"name": "c", "model": {"optimizer": "adam", "schedule": {"final": 0.1}}},
                {"name": "d", "model": {"name": "logistic"}},
            ],
        }
    )
    a, b, c, d = (buyer.model for buyer in scenario.resolved_buyers())
    assert (a.optimizer.name, a.optimizer.options) == ("momentum", {"nesterov": True})
    assert b.optimizer.options == {"nesterov": True, "momentum": 0.5} and b.learning_rate == 0.5
    assert (c.optimizer.name, c.optimizer.options) == ("adam", {})
    assert (c.schedule.name, c.schedule.options) == ("cosine", {"final": 0.1})
    assert (d.optimizer.name, d.schedule.name, d.learning_rate) == ("sgd", "constant", 0.01)
    plain = build_scenario({})
    assert build_scenario({"model": {"optimizer": "sgd"}}).digest() == plain.digest()
    assert build_scenario({"model": {"optimizer": "adam"}}).digest() != plain.digest()
