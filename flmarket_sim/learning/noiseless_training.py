"""How good a buyer's model would be without noise and without a market: the ceiling of accuracy.

One owner has the records of all owners. In every round she sends what an owner sends: the exact
gradient, or the change of the model after exact local steps. It is brought into the domain of the
perturbation, so that it is as long as what is bought, and no noise is added. Model, start,
optimizer, schedule, averaging and the number of rounds are the buyer's own.

It is a yardstick and not a bound: noise can help by luck, and a step size can suit noisy updates
better than exact ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.learning.buyer_model import BuyerModel, Evaluation, require_finite
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.learner import Learner
from flmarket_sim.scenario.model import Learning

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_RECORDS = 2048  # in one round; their mean gradient differs little from that of all records
MOST_WORK = 2e10  # records x passes x rounds x parameters: some ten seconds of one core


def training_work(learning: Learning, records: int, rounds: int, dimension: int) -> float:
    """How much the training has to do: records x passes over them x rounds x parameters."""
    passes = learning.steps if learning.update == "local" else 1
    return float(min(records, MOST_RECORDS)) * passes * rounds * dimension


def train_without_noise(
    learner: Learner,
    learning: Learning,
    data: Dataset,
    rows: Ints,
    prepare: Callable[[Floats], Floats],
) -> Evaluation:
    """Trains a learner who has not begun, for all her rounds on these training records, and
    evaluates her.

    `prepare` brings updates (n, D) into the domain of the market's perturbation. Raises InputError
    if the model does not stay finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the learner refuses what is not finite
        for number in range(learner.rounds):
            used = rows_of_round(rows, number)
            update = exact_update(learner.model, learning, learner.parameters, data, used)
            require_finite(f"the update of buyer {learner.name!r} without noise", update)
            learner.end_round(number, prepare(update[None])[0])
    return learner.evaluate(data)


def rows_of_round(rows: Ints, number: int) -> Ints:
    """The records of a round: all of them, or every k-th where there are many, each in its turn."""
    turns = max(1, -(-len(rows) // MOST_RECORDS))
    return rows[number % turns :: turns]


def exact_update(
    model: BuyerModel, learning: Learning, parameters: Floats, data: Dataset, rows: Ints
) -> Floats:
    """(D,) the gradient on these records, or the change of the model after local steps on them."""
    sizes = np.array([len(rows)])
    if learning.update == "gradient":
        return np.asarray(model.gradients(parameters, data, rows, sizes)[0])
    change = np.zeros_like(parameters)
    for _ in range(learning.steps):
        gradient = model.gradients(parameters - change, data, rows, sizes)[0]
        change += learning.learning_rate * gradient
    return change
