"""The owners of a scenario as clients: for a first try, and for tests against the simulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError
from flmarket_sim.flower.client_market import ClientMarket
from flmarket_sim.flower.own_ledger import Key
from flmarket_sim.flower.owner import Owner
from flmarket_sim.flower.simulation_only import refuse_simulated
from flmarket_sim.learning.buyer_model import NoModel
from flmarket_sim.learning.dataset import Dataset, read_data
from flmarket_sim.market.owner_draws import chances
from flmarket_sim.owners.family_table import family_names
from flmarket_sim.owners.population import Population, create_population
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario

NUMBER = "partition-id"  # Flower's own setting for the number of a simulated node


class DrawnChance:
    """What chance decides for an owner of a scenario, as in its simulation."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        self.scenario, self.number = scenario, number

    def _draw(self, key: Key) -> tuple[bool, bool]:
        streams, owners = Streams(self.scenario.seed), np.array([self.number])
        away, drops_out = chances(self.scenario, streams, key.buyer, key.round, owners)
        return bool(away[0]), bool(drops_out[0])

    def away(self, key: Key) -> bool:
        return self._draw(key)[0]

    def drops_out(self, key: Key) -> bool:
        return self._draw(key)[1]


class SimulatedOwners:
    """All owners of a scenario; each keeps her ledger in a folder of her own under `folder`."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        refuse_simulated(scenario)
        self.scenario, self.folder = scenario, folder
        self._markets: dict[int, ClientMarket] = {}
        learns = any(buyer.model.name != NoModel.name for buyer in scenario.resolved_buyers())
        self.data: Dataset | None = read_data(scenario) if learns else None
        streams = Streams(scenario.seed)
        self.population: Population = create_population(scenario, streams, self.data)

    def market(self, number: int) -> ClientMarket:
        """The market as owner `number` sees it."""
        if number not in self._markets:
            if not 0 <= number < len(self.population):
                raise InputError(f"there is no owner {number}; {self.scenario.name} has fewer")
            self._markets[number] = ClientMarket(
                self.owner(number), DrawnChance(self.scenario, number)
            )
        return self._markets[number]

    def of(self, context: Any) -> ClientMarket:
        """The market of the owner whose number is in the settings of a node."""
        return self.market(int(context.node_config[NUMBER]))

    def owner(self, number: int) -> Owner:
        """An owner with the records and the true type that the scenario draws for her."""
        people, spec = self.population, self.scenario.owners
        x, y = self._records(number)
        return Owner(
            name=f"owner-{number}" if people.names is None else people.names[number],
            x=x,
            y=y,
            classes=None if self.data is None else len(self.data.classes),
            folder=self.folder / f"owner-{number}",
            model=self._model(),
            family=str(family_names(people.family[[number]])[0]),
            rate=float(people.rate[number]),
            privacy_budget=float(people.privacy_budget[number]),
            lifetime_budget=spec.lifetime_budget,
            noise=self.scenario.privacy.noise,
            accept=spec.accept,
            number=number,
            seed=self.scenario.seed,
        )

    def _records(self, number: int) -> tuple[Any, Any]:
        people, data = self.population, self.data
        if data is None or people.rows is None or people.offsets is None:
            return np.zeros((int(people.data_size[number]), 0)), np.zeros(people.data_size[number])
        rows = people.rows[people.offsets[number] : people.offsets[number + 1]]
        return data.train_x[rows], data.train_y[rows]

    def _model(self) -> type | None:
        """The class of a buyer's own model. A scenario of this machine may name a file."""
        names = {buyer.model.name for buyer in self.scenario.resolved_buyers()}
        own = sorted(name for name in names if name not in registry.BUILT_IN["model"])
        if len(own) > 1 or (own and len(names) > 1):
            raise InputError("buyers with different models of their own need different clients")
        return registry.models.get(own[0]) if own else None
