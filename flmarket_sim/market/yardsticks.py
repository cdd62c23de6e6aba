"""What the accuracy of each buyer's model is to be compared with: the constant guess, and the model
without noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import FlmarketError, plugin_errors
from flmarket_sim.eventlog.totals import YARDSTICKS
from flmarket_sim.learning.buyer_model import Evaluation, NoModel, create_model
from flmarket_sim.learning.constant_guess import constant_guess
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.learner import Learner
from flmarket_sim.learning.noiseless_training import MOST_WORK, train_without_noise, training_work
from flmarket_sim.owners.population import Population, create_population
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario

Floats = NDArray[np.float64]
Yardsticks = dict[str, float | None]


def yardsticks(
    scenario: Scenario,
    data: Dataset | None,
    population: Population | None = None,
    notes: list[str] | None = None,
) -> dict[str, Yardsticks]:
    """By the name of the buyer, the numbers YARDSTICKS; None where there is nothing to compare.

    `population` is that of the scenario, if it is drawn already. `notes` gets a sentence for each
    buyer whose model without noise was not computed.
    """
    if data is None:
        return {buyer.name: dict.fromkeys(YARDSTICKS) for buyer in scenario.resolved_buyers()}
    people = population or create_population(scenario, Streams(scenario.seed), data)
    guess, found = constant_guess(data), dict[str, Yardsticks]()
    for index, buyer in enumerate(scenario.resolved_buyers()):
        found[buyer.name] = dict.fromkeys(YARDSTICKS)
        if buyer.model.name == NoModel.name:
            continue
        best = _without_noise(scenario, index, data, people, [] if notes is None else notes)
        found[buyer.name] = {
            "constant_guess": guess.accuracy,
            "constant_guess_balanced": guess.balanced_accuracy,
            "noiseless_accuracy": None if best is None else best.accuracy,
            "noiseless_balanced_accuracy": None if best is None else best.balanced_accuracy,
        }
    return found


def _without_noise(
    scenario: Scenario, index: int, data: Dataset, people: Population, notes: list[str]
) -> Evaluation | None:
    """The buyer's model after exact updates on all owners' records, as `log.ceiling` wants it."""
    if scenario.log.ceiling == "never" or people.rows is None:
        return None
    buyer, clip = scenario.resolved_buyers()[index], scenario.privacy.clip
    model = create_model(buyer.model, data, Streams(scenario.seed), index)
    rows = np.sort(people.rows)
    work = training_work(scenario.learning, len(rows), scenario.rounds, model.dimension)
    whose = f"The accuracy that the model of {buyer.name} would have without noise"
    if scenario.log.ceiling == "auto" and work > MOST_WORK:
        notes.append(
            f"{whose} is not known: it takes {work:.2g} steps of work, and log.ceiling = 'auto' "
            f"ends at {MOST_WORK:.2g}; 'always' computes it, and 'never' leaves it out"
        )
        return None
    perturbation = registry.perturbations.create(
        buyer.perturbation.name, **buyer.perturbation.options
    )

    def prepare(updates: Floats) -> Floats:
        with plugin_errors("perturbation", buyer.perturbation.name):
            return np.asarray(perturbation.prepare(updates, clip), np.float64)

    try:
        learner = Learner(buyer.name, buyer.model, model, scenario.rounds)
        return train_without_noise(learner, scenario.learning, data, rows, prepare)
    except FlmarketError as error:
        notes.append(f"{whose} is not known: {error}")
        return None
