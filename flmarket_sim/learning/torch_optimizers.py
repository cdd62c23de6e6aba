"""Optimizers of torch.optim under their own names, for the parameters of any model.

`torch_optimizers.RMSprop` is a class with the contract of an optimizer. Its options are those of
torch.optim.RMSprop, without the learning rate, which the buyer's schedule sets, and without those
that say how and not what is computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BeforeValidator

from flmarket_sim.learning.optimizers import State, restored, whole_steps
from flmarket_sim.threads import one_torch_thread

Floats = NDArray[np.float64]
NOT_OPTIONS = ("params", "lr", "foreach", "fused", "capturable", "differentiable")
STEPS = "steps"
Numbers = Annotated[
    tuple[float | None, ...], BeforeValidator(lambda v: tuple(v) if isinstance(v, list) else v)
]


class TorchOptimizer:
    """One parameter tensor (D,) in float64, and an optimizer of it.

    The parameters are copied into the tensor for each step, and so are the update, as its gradient,
    and the learning rate.
    """

    name: str
    torch_class: type[torch.optim.Optimizer]

    def __init__(self, dimension: int, **options: Any) -> None:
        self.parameter = torch.nn.Parameter(torch.zeros(dimension, dtype=torch.float64))
        make: Any = self.torch_class
        self.optimizer: torch.optim.Optimizer = make([self.parameter], **options)
        self.steps = 0

    def step(self, parameters: Floats, update: Floats, learning_rate: float) -> Floats:
        with one_torch_thread():
            with torch.no_grad():
                self.parameter.copy_(torch.from_numpy(np.ascontiguousarray(parameters)))
            self.parameter.grad = torch.from_numpy(np.array(update, np.float64))
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate
            self.optimizer.step()
            self.steps += 1
            stepped: Floats = self.parameter.detach().numpy().copy()
            return stepped

    def state(self) -> State:
        """The number of steps and, after the first, what torch keeps for the parameter."""
        kept = self._kept() if self.steps else {}
        return {STEPS: np.array([float(self.steps)])} | {
            name: torch.as_tensor(value).numpy().astype(np.float64) for name, value in kept.items()
        }

    def restore(self, state: Mapping[str, Floats]) -> None:
        steps = whole_steps(restored({STEPS: np.zeros(1)}, {STEPS: state[STEPS]})[STEPS])
        if steps:  # a step with nothing makes what torch keeps; its values are then replaced
            nothing = np.zeros(len(self.parameter))
            self.step(nothing, nothing, 1.0)
        kept, self.steps = self._kept(), steps
        values = restored(self.state(), state)
        for name, known in kept.items():
            if steps and isinstance(known, torch.Tensor):
                known.copy_(torch.from_numpy(values[name]))
            elif steps:
                self.optimizer.state[self.parameter][name] = type(known)(values[name])

    def _kept(self) -> dict[str, Any]:
        """What torch keeps for the parameter, by name: tensors, and numbers in some optimizers."""
        kept = self.optimizer.state[self.parameter]
        return {name: value for name, value in kept.items() if value is not None}


def __getattr__(name: str) -> Any:
    """`torch_optimizers.NAME` is made of torch.optim.NAME when it is asked for."""
    cls = getattr(torch.optim, name, None)
    if not (isinstance(cls, type) and issubclass(cls, torch.optim.Optimizer)):
        raise AttributeError(f"torch.optim has no optimizer {name!r}")
    return _wrapped(name)


@cache
def _wrapped(name: str) -> type[TorchOptimizer]:
    """A class with the options of torch.optim's class in its signature."""
    torch_class = getattr(torch.optim, name)
    place = inspect.Parameter("dimension", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int)
    options = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=_type_of(option.default),
        )
        for option in inspect.signature(torch_class).parameters.values()
        if option.name not in NOT_OPTIONS
    ]
    content = {
        "__doc__": f"torch.optim.{name}, at the learning rate of the buyer's schedule.",
        "__signature__": inspect.Signature([place, *options]),
        "name": name,
        "torch_class": torch_class,
    }
    return type(name, (TorchOptimizer,), content)


def _type_of(default: Any) -> Any:
    """The type of an option, by its default: torch writes many numbers as 0."""
    if isinstance(default, bool):
        return bool
    if isinstance(default, tuple):
        return Numbers
    return float if isinstance(default, int | float) else Any
