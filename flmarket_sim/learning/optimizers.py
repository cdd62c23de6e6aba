"""What a buyer does with a delivered update: the contract of an optimizer, and the plain ones.

An update plays the role of a gradient: a step goes against it. Optimizers of torch.optim are in
torch_optimizers.py, so that a market without them does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.options import chosen, options_model
from flmarket_sim.scenario.part import Plugin

Floats = NDArray[np.float64]
State = dict[str, Floats]
Decay = Annotated[float, Field(ge=0, lt=1)]
Tiny = Annotated[float, Field(gt=0, le=1)]
Betas = Annotated[
    tuple[Decay, Decay], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
]


class Optimizer(Protocol):
    """An optimizer of D parameters, built as Class(D, **options).

    Everything that it remembers from one step to the next is in `state`, as float64 arrays by name:
    a checkpoint stores these and nothing else.
    """

    name: str

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        """(D,) the parameters after a step with an update (D,), in new memory."""
        ...

    def state(self) -> State: ...

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Continues from a state; raises ValueError or KeyError if it cannot be its own."""
        ...


class Sgd:
    """A step of plain gradient descent: w - learning_rate x update."""

    name = "sgd"

    def __init__(self, dimension: int) -> None: ...

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        return parameters - learning_rate * update

    def state(self) -> State:
        return {}

    def restore(self, state: Mapping[str, Floats]) -> None:
        restored({}, state)


class Average(Sgd):
    """The new model is the weighted mean of the owners' models (FedAvg): w - update.

    This is meant for `[learning] update = "local"`, where an update is the difference to an owner's
    model. The weights are those of the aggregation rule; where they sum to less than 1, the old
    model has the rest. The learning rate and its schedule have no effect.
    """

    name = "average"

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        return parameters - update


class Momentum:
    """Gradient descent with momentum, as torch.optim.SGD has it.

    v <- momentum x v + update, and the step is learning_rate x v; with `nesterov` it is
    learning_rate x (update + momentum x v).
    """

    name = "momentum"

    def __init__(self, dimension: int, momentum: Decay = 0.9, nesterov: bool = False) -> None:
        self.momentum, self.nesterov = momentum, nesterov
        self.velocity = np.zeros(dimension)

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        self.velocity = self.momentum * self.velocity + update
        direction = update + self.momentum * self.velocity if self.nesterov else self.velocity
        return parameters - learning_rate * direction

    def state(self) -> State:
        return {"velocity": self.velocity}

    def restore(self, state: Mapping[str, Floats]) -> None:
        self.velocity = restored(self.state(), state)["velocity"]


class Adam:
    """Adam: steps by running means of the update and of its squares, both corrected for the start.

    `betas` are the decays of the two means, and `eps` is added to the root of the second.
    """

    name = "adam"

    def __init__(self, dimension: int, betas: Betas = (0.9, 0.999), eps: Tiny = 1e-8) -> None:
        self.betas, self.eps, self.steps = betas, eps, 0
        self.mean, self.square = np.zeros(dimension), np.zeros(dimension)

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        first, second = self.betas
        self.steps += 1
        self.mean = first * self.mean + (1 - first) * update
        self.square = second * self.square + (1 - second) * np.square(update)
        root = np.sqrt(self.square / (1 - second**self.steps)) + self.eps
        return parameters - learning_rate / (1 - first**self.steps) * self.mean / root

    def state(self) -> State:
        return {"steps": np.array([float(self.steps)]), "mean": self.mean, "square": self.square}

    def restore(self, state: Mapping[str, Floats]) -> None:
        known = restored(self.state(), state)
        self.steps = whole_steps(known["steps"])
        self.mean, self.square = known["mean"], known["square"]


def create_optimizer(spec: Plugin, dimension: int) -> Optimizer:
    """The optimizer of a scenario, for D parameters."""
    cls = registry.optimizers.get(spec.name)
    options = chosen(options_model(cls, skip=1).model_validate(spec.options))
    with plugin_errors("optimizer", spec.name):
        built: Optimizer = cls(dimension, **options)
    return built


def checked_step(
    optimizer: Optimizer, parameters: Floats, update: Floats, learning_rate: float
) -> Floats:
    """The step of an optimizer that may be foreign code; refuses another shape of parameters."""
    with np.errstate(over="ignore", invalid="ignore"), plugin_errors("optimizer", optimizer.name):
        stepped = np.asarray(optimizer.step(parameters, update, learning_rate), np.float64)
    if stepped.shape != parameters.shape:
        raise ContractError(
            f"optimizer {optimizer.name!r} made parameters of shape {stepped.shape} out of "
            f"{parameters.shape}"
        )
    return stepped


def restored(known: Mapping[str, Floats], stored: Mapping[str, Floats]) -> State:
    """The stored arrays, if they have the names and shapes of known ones; else ValueError."""
    if known.keys() != stored.keys():
        raise ValueError(f"an optimizer's state has {sorted(known)}, and not {sorted(stored)}")
    for name, array in stored.items():
        if array.dtype != np.float64 or array.shape != known[name].shape:
            raise ValueError(
                f"{array.dtype} {array.shape} where the optimizer's {name!r} has shape "
                f"{known[name].shape}"
            )
        if not np.isfinite(array).all():
            raise ValueError(f"the optimizer's {name!r} is not finite")
    return dict(stored)


def whole_steps(stored: Floats) -> int:
    """A number of steps from its array (1,)."""
    steps = float(stored[0])
    if steps < 0 or steps != int(steps):
        raise ValueError(f"{steps} steps of an optimizer")
    return int(steps)
