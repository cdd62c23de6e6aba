"""What chance decides for each asked owner in a round: delays, absence and dropouts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.market.world import World
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class OwnerDelays(NamedTuple):
    """Seconds that each message between broker and owner takes: a list over the owners for each.

    The numbers are drawn in the order of the fields, so the order is part of the format.
    """

    announcement: list[float]
    bid: list[float]
    allocation: list[float]
    decision: list[float]
    model: list[float]
    gradient: list[float]
    payment: list[float]


@dataclass(frozen=True)
class OwnerDraws:
    """The draws of n owners: their delays, who is `away`, and who drops out after she accepted."""

    delays: OwnerDelays
    away: NDArray[np.bool_]
    drops_out: NDArray[np.bool_]

    def of(self, origin: Ints) -> OwnerDraws:
        """The draws of participants who are owners `origin`: all names of a person share hers."""
        delays = ([seconds[slot] for slot in origin.tolist()] for seconds in self.delays)
        return OwnerDraws(OwnerDelays(*delays), self.away[origin], self.drops_out[origin])


def draw_owners(world: World, buyer: int, round_number: int, owners: Ints) -> OwnerDraws:
    """Draws for the owners whom a buyer's auction asks in a round."""
    spec, width = world.scenario.owners, len(OwnerDelays._fields) + 2
    uniform = np.zeros((len(owners), width))
    if world.delay.random or spec.availability < 1.0 or spec.dropout > 0.0:
        uniform = _uniform(world.streams, buyer, round_number, owners)
    delays = world.delays(uniform[:, :-2].T).tolist()
    return OwnerDraws(OwnerDelays(*delays), *_chances(world.scenario, uniform))


def chances(
    scenario: Scenario, streams: Streams, buyer: int, round_number: int, owners: Ints
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(n,) who of these owners is away in a round, and who drops out; as `draw_owners` has it."""
    return _chances(scenario, _uniform(streams, buyer, round_number, owners))


def _uniform(streams: Streams, buyer: int, round_number: int, owners: Ints) -> Floats:
    width = len(OwnerDelays._fields) + 2
    return streams.per_owner(Purpose.WORLD, owners, width, buyer, round_number)


def _chances(scenario: Scenario, uniform: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    spec = scenario.owners
    return uniform[:, -2] >= spec.availability, uniform[:, -1] < spec.dropout
