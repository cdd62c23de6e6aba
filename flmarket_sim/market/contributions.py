"""What sellers contributed to a round: for the log, and for their payments where these follow."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.robust.robust_rule import RobustRule
from flmarket_sim.aggregation.rule import AggregationRule
from flmarket_sim.contribution.contribution_rule import (
    ContributionRule,
    Contributions,
    Game,
    check_contributions,
)
from flmarket_sim.contribution.games import ErrorGame, LossGame
from flmarket_sim.contribution.money_shares import shares_of_sellers
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import ContributionRecord
from flmarket_sim.learning.buyer_model import BuyerModel
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.optimizers import checked_step, create_optimizer
from flmarket_sim.learning.schedules import create_schedule, learning_rate_at
from flmarket_sim.market.aggregate import ErrorReadings
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.messages import Announcement, GradientMessage, Offers
from flmarket_sim.market.world import World
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose
from flmarket_sim.scenario.contribution_table import Contribution
from flmarket_sim.scenario.model import Model, ResolvedBuyer

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # relative to what all sellers are worth


@dataclass
class Accountant:
    """Works out contributions to the purchases of one buyer, and what they pay.

    `validation` has the records that judge a step of the model: a sample of the test records, on
    which no model is trained. It is drawn once.
    """

    world: World
    index: int
    spec: Contribution
    model_spec: Model
    model: BuyerModel | None
    rule: AggregationRule
    robust: RobustRule
    errors: ErrorReadings
    contribution: ContributionRule = field(init=False)
    validation: Dataset | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.contribution = registry.contributions.create(self.spec.name, **self.spec.options)
        data = self.world.data
        if self.spec.value == "validation-loss" and data is not None:
            rng = self.world.streams.generator(Purpose.VALIDATION, self.index)
            rows = np.sort(rng.permutation(len(data.test_y))[: self.spec.records])
            self.validation = replace(data, test_x=data.test_x[rows], test_y=data.test_y[rows])

    def settle(
        self,
        cohort: Cohort,
        announcement: Announcement,
        offers: Offers,
        kept: list[GradientMessage],
    ) -> Floats | None:
        """(k,) by offers, what the sellers whose messages are `kept` would be paid if nobody were
        accused; None where the auction's offers are paid. Logs what each contributed.

        The money is what the auction offers to these sellers, or the budget. Where no contribution
        is positive and some are negative, nobody gets anything. Other sellers have no share.
        """
        payment = np.zeros(len(offers.slots))
        if kept:
            game = self.game(cohort, announcement, offers, kept)
            rows = np.array([message.row for message in kept])
            made = self._values(game, cohort.round)
            whole = float(game.worth(np.ones((1, game.players), bool))[0])
            share = shares_of_sellers(made.value, ROUNDING * abs(whole))
            record = ContributionRecord(
                value=made.value, standard_error=made.standard_error, share=share
            )
            cohort.write(record, receiver=cohort.participants[offers.slots[rows]])
            by_auction = float(offers.payment[rows].sum())
            payment[rows] = share * (
                by_auction if self.spec.pays == "auction" else announcement.budget
            )
        return None if self.spec.pays == "nothing" else payment

    def game(
        self,
        cohort: Cohort,
        announcement: Announcement,
        offers: Offers,
        gradients: list[GradientMessage],
    ) -> Game:
        """What coalitions of the sellers of this round are worth."""
        rows = np.array([message.row for message in gradients])
        loss = np.zeros(len(offers.slots))
        loss[rows] = offers.privacy_loss[rows]
        size = cohort.reports.data_size[offers.slots]
        purchase = ErrorGame(self.rule, self.errors.chosen, loss, size, rows)
        parameters, model, data = announcement.parameters, self.model, self.validation
        if parameters is None or model is None or data is None:
            return purchase
        sent = np.stack([m.gradient for m in gradients if m.gradient is not None])
        spec, rounds = self.model_spec, self.world.scenario.rounds
        schedule = create_schedule(spec.schedule)
        rate = learning_rate_at(schedule, spec.learning_rate, cohort.round, rounds)
        rested = create_optimizer(spec.optimizer, len(parameters))
        squared = self.errors.vector.radius**2

        def loss_after(gradient: Floats | None, bound: float) -> float:
            """After a step that an optimizer without a past takes."""
            after = parameters
            if gradient is not None:
                update = gradient * (squared / (squared + bound)) if spec.shrink else gradient
                after = checked_step(deepcopy(rested), parameters, update, rate)
            return float(model.evaluate(after, data).loss)

        return LossGame(purchase, self.errors.vector, self.robust, sent, loss_after)

    def _values(self, game: Game, round_number: int) -> Contributions:
        rng = self.world.streams.generator(Purpose.CONTRIBUTION, self.index, round_number)
        with plugin_errors("contribution", self.contribution.name):
            made = self.contribution.values(game, rng)
        return check_contributions(self.contribution.name, made, game.players)


def accountant_of(
    world: World,
    index: int,
    buyer: ResolvedBuyer,
    model: BuyerModel | None,
    rule: AggregationRule,
    robust: RobustRule,
    errors: ErrorReadings,
) -> Accountant | None:
    """Who works out contributions to a buyer's purchases; nobody if the scenario does not ask."""
    spec = world.scenario.contribution
    if spec is None:
        return None
    return Accountant(world, index, spec, buyer.model, model, rule, robust, errors)
