"""What the server has for one buyer: her auction, her rule, her money and her model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation, auctions
from flmarket_sim.auctions.auction import SellsInTurn, auction_in
from flmarket_sim.auctions.learned.regime import regime_note
from flmarket_sim.errors import InputError
from flmarket_sim.flower.messages import Named, Terms
from flmarket_sim.learning.buyer_model import BuyerModel, NoModel, create_model, gradient_dimension
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.learner import Learner
from flmarket_sim.market.aggregate import error_readings
from flmarket_sim.market.world import randomisers
from flmarket_sim.owners.population import Population, draw_money
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import ResolvedBuyer, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BuyerDesk:
    """One buyer of a market of real clients.

    `people` are the owners of the scenario where it has drawn them; of real owners nobody knows
    the true valuations, so there a budget has to be an amount.
    """

    def __init__(
        self,
        scenario: Scenario,
        index: int,
        spec: ResolvedBuyer,
        data: Dataset | None,
        people: Population | None,
    ) -> None:
        self.scenario, self.index, self.spec, self.data = scenario, index, spec, data
        self.streams = Streams(scenario.seed)
        self.model: BuyerModel | None = None
        self.learner: Learner | None = None
        if spec.model.name != NoModel.name:
            assert data is not None
            self.model = create_model(spec.model, data, self.streams, index)
            self.learner = Learner(spec.name, spec.model, self.model, scenario.rounds)
        self.rule = aggregation.create(spec.aggregation.name, **spec.aggregation.options)
        self.robust = registry.robust_rules.create(spec.robust.name, **spec.robust.options)
        self.perturbation: Perturbation = _perturbation(scenario, index)
        self.dimension = gradient_dimension(spec.model, self.model)
        self.errors = error_readings(self.perturbation, scenario.privacy.clip, spec, self.dimension)
        made = auctions.create(spec.auction.name, **spec.auction.options)
        self.auction = auction_in(made, self.errors.chosen)
        self.in_turn = self.auction if isinstance(self.auction, SellsInTurn) else None
        self.note = regime_note(made, self.errors.chosen)
        self.money = self._money(people)

    @property
    def terms(self) -> Terms:
        """What owners have to know."""
        shape = (0, 0) if self.data is None else (self.data.train_x.shape[1], self._classes)
        scenario, spec = self.scenario, self.spec
        return Terms(
            levels=scenario.market.levels,
            clip=scenario.privacy.clip,
            perturbation=_named(spec.perturbation.name, spec.perturbation.options),
            model=_named(spec.model.name, spec.model.options),
            features=shape[0],
            classes=shape[1],
            learning=scenario.learning.model_dump(mode="json"),
            auction=_named(spec.auction.name, spec.auction.options),
            in_turn=self.in_turn is not None,
        )

    def budget(self, number: int, bidders: Ints) -> float:
        """Her money for a round in which these owners are asked."""
        return float(self.money[number]) * self._value(bidders)

    @property
    def _classes(self) -> int:
        return 0 if self.data is None else len(self.data.classes)

    def _money(self, people: Population | None) -> Floats:
        budget = self.spec.budget
        self._values: Floats | None = None
        if budget.factor is not None:
            if people is None:
                raise InputError(
                    f"the budget of {self.spec.name!r} is a factor of the owners' true valuations, "
                    "which nobody knows of real owners: give budget.amount instead"
                )
            self._values = people.value(np.arange(len(people)), people.privacy_budget)
        return draw_money(self.streams, budget, self.index, self.scenario.rounds)

    def _value(self, bidders: Ints) -> float:
        return 1.0 if self._values is None else float(self._values[bidders].sum())


def _perturbation(scenario: Scenario, index: int) -> Perturbation:
    """How her gradients are made private. The noise is the owners' affair."""
    return randomisers(scenario, Streams(scenario.seed))[index].perturbation


def _named(name: str, options: dict[str, Any]) -> Named:
    return Named(name=name, **options)
