"""What behaviours learn after a round, and the money that their owners give each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import TransferRecord
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.cohort_misreports import BehaviourPart
from flmarket_sim.market.messages import Offers
from flmarket_sim.strategy.behaviours.behaviour import (
    Feedback,
    LearningBehaviour,
    SharingBehaviour,
    check_transfers,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def give_feedback(cohort: Cohort, offers: Offers, delivered: Ints, received: Floats) -> None:
    """Tells behaviours what their owners sold and got, and books what these owners give each other.

    `delivered` (g,) are the rows of the offers whose gradients came in time, and `received` (g,)
    what their owners get for them, less the deposits that they lose.
    """
    world, slots = cohort.world, offers.slots[delivered]
    assert world.cast is not None and cohort.misreports is not None
    loss, payment, value = np.zeros((3, len(cohort.participants)))
    loss[slots], payment[slots] = offers.privacy_loss[delivered], received
    value[slots] = cohort.true_costs(offers, delivered)
    for part in cohort.misreports.parts:
        behaviour = world.cast.behaviours[part.behaviour]
        if not isinstance(behaviour, LearningBehaviour | SharingBehaviour):
            continue
        owners = len(part.view.owners)
        largest = np.zeros(owners)
        np.maximum.at(largest, part.of, loss[part.slots])
        paid, cost = (
            np.bincount(part.of, column[part.slots], owners).astype(float)
            for column in (payment, value)
        )
        feedback = Feedback(part.view, largest, paid, paid - cost)
        with plugin_errors("behaviour", behaviour.name):
            if isinstance(behaviour, LearningBehaviour):
                behaviour.learn(feedback)
            if isinstance(behaviour, SharingBehaviour):
                _share(cohort, behaviour, part, feedback)


def _share(
    cohort: Cohort, behaviour: SharingBehaviour, part: BehaviourPart, feedback: Feedback
) -> None:
    proposed = behaviour.share(feedback)
    if proposed is not None:
        transfers = check_transfers(behaviour.name, proposed, part.view)
        cohort.world.ledger.transfer(*transfers)
        record = TransferRecord(amount=transfers.amount)
        cohort.write(record, sender=transfers.payer, receiver=transfers.payee)
