"""The buyer: announces a budget each round, pays for the gradient she gets, and takes a step with it (FedSGD)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from simpy.events import Event

from flmarket_sim.eventlog import BROKER, buyer_id
from flmarket_sim.learning.model import BuyerModel, Evaluation, require_finite
from flmarket_sim.market.broker import Broker
from flmarket_sim.market.mail import Letter
from flmarket_sim.market.messages import Announcement, DeliveryMessage, Payment
from flmarket_sim.market.world import World
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]


class Buyer:
    """One buyer and her model. `model` is None in a market without learning; `done` counts her rounds."""

    def __init__(
        self,
        world: World,
        index: int,
        spec: ResolvedBuyer,
        model: BuyerModel | None,
        broker: Broker,
        after_round: Callable[[], None],
    ) -> None:
        self.world, self.index, self.spec, self.model = world, index, spec, model
        self.broker, self.after_round = broker, after_round
        self.parameters: Floats | None = None if model is None else model.initial()
        self.done = 0

    def buy(self) -> Generator[Event, Any, None]:
        """All rounds that are not done yet, one after the other."""
        env, log = self.world.env, self.world.log
        me = buyer_id(self.index)
        for number in range(self.done, self.world.scenario.rounds):
            started = env.now
            budget = self.world.budget(self.spec.budget, self.index, number)
            to_broker, _, payment_delay = self.world.buyer_delays(self.index, number)
            reply = Letter(env)
            log.block("announcement", 1, env.now, number, self.index, me, BROKER, budget)
            arrival = env.timeout(
                to_broker, Announcement(self.index, number, budget, self.parameters, reply)
            )
            arrival.callbacks.append(self.broker.receive)
            delivery: DeliveryMessage = yield reply
            if delivery.counts.delivered:
                log.block("payment", 1, env.now, number, self.index, me, BROKER, delivery.owed)
                delivery.reply.send(Payment(delivery.owed), payment_delay)
            self._step(delivery.gradient)
            self._log_round(number, started, budget, delivery)
            self.done = number + 1
            self.after_round()

    def _step(self, gradient: Floats | None) -> None:
        if gradient is not None and self.parameters is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                self.parameters = self.parameters - self.spec.model.learning_rate * gradient
            require_finite(f"the model of buyer {self.spec.name!r}", self.parameters)

    def _evaluate(self, number: int) -> Evaluation | None:
        last = number == self.world.scenario.rounds - 1
        due = (number + 1) % self.spec.model.evaluate_every == 0 or last
        if self.model is None or self.parameters is None or self.world.data is None or not due:
            return None
        return self.model.evaluate(self.parameters, self.world.data)

    def _log_round(
        self, number: int, started: float, budget: float, delivery: DeliveryMessage
    ) -> None:
        env, log = self.world.env, self.world.log
        me = buyer_id(self.index)
        found = self._evaluate(number)
        loss, accuracy = (None, None) if found is None else (found.loss, found.accuracy)
        recall = None if found is None else found.recall.tolist()
        valid = delivery.counts.delivered > 0
        log.row("update", env.now, number, self.index, me, me, valid, loss, accuracy, recall)
        truth = self.world.observed[self.index]
        log.row(
            "round", env.now, number, self.index, me, me, started, env.now, budget, *delivery.counts, delivery.owed,
            truth.privacy_sold, truth.value_sold, valid, delivery.error_bound, delivery.variance, delivery.squared_bias,
            truth.true_error, loss, accuracy, truth.bound_of_data,
        )  # fmt: skip
