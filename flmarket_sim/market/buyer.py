"""The buyer: announces a budget, pays for the gradient, and takes a step with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim.eventlog import BROKER, buyer_id
from flmarket_sim.eventlog.record import Record
from flmarket_sim.eventlog.schema import AnnouncementRecord, PaymentRecord
from flmarket_sim.learning.buyer_model import BuyerModel, Evaluation
from flmarket_sim.learning.learner import Learner
from flmarket_sim.market.broker import Broker
from flmarket_sim.market.mail import Letter
from flmarket_sim.market.messages import Announcement, DeliveryMessage, Payment
from flmarket_sim.market.round_records import round_records
from flmarket_sim.market.world import World
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]


class Buyer:
    """One buyer and her model.

    `learner` is the model that she trains, None in a market without learning; `done` counts her
    finished rounds. At the end of each, `after_round` is called with the buyer and the delivered
    gradient.
    """

    def __init__(
        self,
        world: World,
        index: int,
        spec: ResolvedBuyer,
        model: BuyerModel | None,
        broker: Broker,
        after_round: AfterRound,
    ) -> None:
        self.world, self.index, self.spec = world, index, spec
        self.broker, self.after_round = broker, after_round
        self.learner: Learner | None = None
        if model is not None:
            self.learner = Learner(spec.name, spec.model, model, world.scenario.rounds)
        self.done = 0

    @property
    def parameters(self) -> Floats | None:
        """(D,) the latest parameters of her model."""
        return None if self.learner is None else self.learner.parameters

    def buy(self) -> Generator[Event, Any, None]:
        """Buys in all rounds that are not done yet, one after the other."""
        env = self.world.env
        for number in range(self.done, self.world.scenario.rounds):
            started = env.now
            budget = self.world.budget(self.spec.budget, self.index, number)
            to_broker, _, payment_delay = self.world.buyer_delays(self.index, number)
            reply = Letter(env)
            self._log(AnnouncementRecord(budget=budget), number)
            arrival = env.timeout(
                to_broker, Announcement(self.index, number, budget, self.parameters, reply)
            )
            arrival.callbacks.append(self.broker.receive)
            delivery: DeliveryMessage = yield reply
            if delivery.counts.delivered or delivery.owed > 0:
                self._log(PaymentRecord(amount=delivery.owed), number)
                delivery.reply.send(Payment(delivery.owed), payment_delay)
            if self.learner is not None:
                squared = self.broker.errors.vector.radius**2
                shrinkage = squared / (squared + delivery.bounds.vector_bound)
                self.learner.end_round(number, delivery.gradient, shrinkage)
            self._log_round(number, started, budget, delivery)
            self.done = number + 1
            self.after_round(self, delivery.gradient)

    def _evaluate(self, number: int) -> Evaluation | None:
        due = self.spec.model.evaluated(number, self.world.scenario.rounds)
        if self.learner is None or self.world.data is None or not due:
            return None
        return self.learner.evaluate(self.world.data)

    def _log_round(
        self, number: int, started: float, budget: float, delivery: DeliveryMessage
    ) -> None:
        now = self.world.env.now
        evaluation = self._evaluate(number)
        truth = self.world.observed[self.index]
        times = (started, now)
        for record in round_records(times, budget, delivery, evaluation, truth):
            self._log(record, number, receiver=buyer_id(self.index))

    def _log(self, record: Record, number: int, receiver: int = BROKER) -> None:
        self.world.log.write(
            record,
            time=self.world.env.now,
            round=number,
            buyer=self.index,
            sender=buyer_id(self.index),
            receiver=receiver,
        )


AfterRound = Callable[[Buyer, Floats | None], None]
