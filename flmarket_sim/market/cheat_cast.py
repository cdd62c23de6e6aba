"""Which owners cheat after a sale, and how."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.behaviour_cast import (
    HONEST,
    Cast,
    Codes,
    begun,
    first_free,
    numbered_labels,
)
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.cheating_tables import CheatShare
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.strategy.cheats.cheat import Cheat

Ints = NDArray[np.int64]


def cheat_labels(scenario: Scenario) -> tuple[str, ...]:
    """The names of a scenario's cheats in the log, numbered where one name occurs twice."""
    return numbered_labels(
        [str(registry.cheats.get(spec.name).name) for spec in scenario.owners.cheats]
    )


class CheatCast:
    """Who cheats how. `code` (N,) is a position in the scenario's list of cheats, or HONEST.

    Each cheat has an order of owners of its own, drawn by its place in the list, and takes the
    first ones. Their bids are the business of behaviours.
    """

    def __init__(self, scenario: Scenario, streams: Streams, bidding: Cast | None) -> None:
        specs, count = scenario.owners.cheats, scenario.owners.count
        self.streams, self.labels = streams, cheat_labels(scenario)
        self.cheats: list[Cheat] = [
            registry.cheats.create(spec.name, **spec.options) for spec in specs
        ]
        self.begins = np.array([spec.from_round for spec in specs])
        orders = []
        for place, spec in enumerate(specs):
            order = streams.generator(Purpose.CHEATS, place).permutation(count)
            orders.append(order[_are_among(spec, order, bidding)])
        self.code = first_free(count, [spec.share for spec in specs], orders)

    def acting(self, owners: Ints, round_number: int) -> Codes:
        """(n,) the cheat of each owner in a round."""
        return begun(self.code[owners], self.begins, round_number)


def _are_among(spec: CheatShare, owners: Ints, bidding: Cast | None) -> NDArray[np.bool_]:
    if spec.among == "all":
        return np.ones(len(owners), np.bool_)
    behaves = np.zeros(len(owners), np.bool_) if bidding is None else bidding.code[owners] != HONEST
    return behaves if spec.among == "with behaviour" else ~behaves
