"""A buyer's model while it learns: parameters, optimizer, schedule, and the mean of its models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.learning.averaging import averaged
from flmarket_sim.learning.buyer_model import BuyerModel, Evaluation, require_finite
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.optimizers import checked_step, create_optimizer
from flmarket_sim.learning.schedules import create_schedule, learning_rate_at
from flmarket_sim.scenario.model import Model

Floats = NDArray[np.float64]
PARAMETERS, AVERAGE, OPTIMIZER = "parameters", "average", "optimizer "


class Learner:
    """The model that a buyer trains.

    parameters  (D,) what she announces in the next round
    average     (D,) what she evaluates, where her models are averaged; else None
    """

    def __init__(self, name: str, spec: Model, model: BuyerModel, rounds: int) -> None:
        self.name, self.spec, self.model, self.rounds = name, spec, model, rounds
        self.parameters = model.initial()
        self.average = self.parameters.copy() if spec.averaging else None
        self.optimizer = create_optimizer(spec.optimizer, len(self.parameters))
        self.schedule = create_schedule(spec.schedule)

    def end_round(self, number: int, update: Floats | None, shrinkage: float = 1.0) -> None:
        """Takes a step with what was delivered, if anything was; the mean counts every round.

        `shrinkage` is C^2 / (C^2 + bound of the update's squared error): the factor with which the
        update is the best linear estimate of a vector of length C (where the bound is exact).
        """
        if update is not None:
            if self.spec.shrink:
                update = update * shrinkage
            rate = learning_rate_at(self.schedule, self.spec.learning_rate, number, self.rounds)
            self.parameters = checked_step(self.optimizer, self.parameters, update, rate)
            require_finite(f"the model of buyer {self.name!r}", self.parameters)
            for key, array in self.optimizer.state().items():
                require_finite(f"{key!r} of the optimizer of buyer {self.name!r}", array)
        if self.average is not None:
            self.average = averaged(self.average, self.parameters, number + 1, self.spec.averaging)

    def evaluate(self, data: Dataset) -> Evaluation:
        """The mean of the models on the test records, or the latest model if there is no mean."""
        seen = self.parameters if self.average is None else self.average
        return self.model.evaluate(seen, data)

    def state(self) -> dict[str, Floats]:
        """Everything that the next rounds depend on, as float64 arrays by name."""
        arrays = {PARAMETERS: self.parameters}
        if self.average is not None:
            arrays[AVERAGE] = self.average
        return arrays | {OPTIMIZER + key: a for key, a in self.optimizer.state().items()}

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Continues from a state; raises ValueError or KeyError if it is not one of this model."""
        self.parameters = self._like_parameters(state[PARAMETERS])
        if self.average is not None:
            self.average = self._like_parameters(state[AVERAGE])
        self.optimizer.restore(
            {
                key.removeprefix(OPTIMIZER): array
                for key, array in state.items()
                if key.startswith(OPTIMIZER)
            }
        )

    def _like_parameters(self, stored: Floats) -> Floats:
        known = self.parameters
        if stored.dtype != known.dtype or stored.shape != known.shape:
            raise ValueError(f"{stored.dtype} {stored.shape} where {known.shape} parameters were")
        if not np.isfinite(stored).all():
            raise ValueError("parameters that are not finite")
        return stored
