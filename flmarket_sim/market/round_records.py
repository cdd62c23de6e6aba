"""The last events of a round: the buyer's step, and the summary of the round."""

from __future__ import annotations

from typing import Protocol

from flmarket_sim.eventlog.schema import RoundRecord, UpdateRecord
from flmarket_sim.learning.buyer_model import Evaluation
from flmarket_sim.market.messages import Bounds, RoundCounts
from flmarket_sim.market.world import Observation


class Delivered(Protocol):
    """What a summary says of a delivery: its price, who took part, and how far it can be off."""

    @property
    def owed(self) -> float: ...

    @property
    def counts(self) -> RoundCounts: ...

    @property
    def bounds(self) -> Bounds: ...


def round_records(
    times: tuple[float, float],
    budget: float,
    delivery: Delivered,
    evaluation: Evaluation | None,
    truth: Observation,
) -> tuple[UpdateRecord, RoundRecord]:
    """The events `update` and `round` of a round between two `times`.

    `truth` is what nobody in the market knows; a market of real clients says there what is unknown.
    """
    loss = None if evaluation is None else evaluation.loss
    accuracy = None if evaluation is None else evaluation.accuracy
    recall = None if evaluation is None else evaluation.recall.tolist()
    balanced = None if evaluation is None else evaluation.balanced_accuracy
    valid, counts = delivery.counts.delivered > 0, delivery.counts
    update = UpdateRecord(
        valid=valid, loss=loss, accuracy=accuracy, recall=recall, balanced_accuracy=balanced
    )
    summary = RoundRecord(
        started=times[0],
        ended=times[1],
        budget=budget,
        asked=counts.asked,
        bids=counts.bids,
        winners=counts.winners,
        accepted=counts.accepted,
        delivered=counts.delivered,
        spent=delivery.owed,
        privacy_sold=truth.privacy_sold,
        value_sold=truth.value_sold,
        valid=valid,
        true_error=truth.true_error,
        loss=loss,
        accuracy=accuracy,
        balanced_accuracy=balanced,
        bound_of_data=truth.bound_of_data,
        **delivery.bounds._asdict(),
    )
    return update, summary
