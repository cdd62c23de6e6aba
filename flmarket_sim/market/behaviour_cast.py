"""Which owners have which behaviour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.strategy.behaviours.behaviour import Behaviour

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
HONEST = -1  # in place of a behaviour


def behaviour_labels(scenario: Scenario) -> tuple[str, ...]:
    """The names of a scenario's behaviours in the log, numbered where one name occurs twice."""
    return numbered_labels(
        [str(registry.behaviours.get(spec.name).name) for spec in scenario.owners.behaviours]
    )


def numbered_labels(names: list[str]) -> tuple[str, ...]:
    """The names, with numbers from the second occurrence of a name on."""
    labels: list[str] = []
    for name in names:
        before = sum(label == name or label.startswith(f"{name}-") for label in labels)
        labels.append(f"{name}-{before + 1}" if name in labels else name)
    return tuple(labels)


def first_free(count: int, shares: Sequence[float], orders: Sequence[Ints]) -> Codes:
    """(count,) the first place of a list whose share of its own order has the owner, or HONEST.

    Each place takes the first owners of its order whom no earlier place has taken, so that a larger
    share keeps the owners of a smaller one.
    """
    code: Codes = np.full(count, HONEST, np.int8)
    for place, (share, order) in enumerate(zip(shares, orders, strict=True)):
        free = order[code[order] == HONEST]
        code[free[: int(np.floor(share * len(order) + 0.5))]] = place
    return code


def begun(code: Codes, begins: Ints, round_number: int) -> Codes:
    """(n,) what owners do in a round, of places that begin in the rounds `begins`."""
    return np.where(begins[code] <= round_number, code, HONEST).astype(np.int8)


class Cast:
    """Who behaves how. `code` (N,) is a position in the scenario's list of behaviours, or HONEST.

    Each behaviour has an order of owners of its own, drawn by its place in the list, and takes the
    first ones, so that another behaviour in the same place has the same owners.
    """

    def __init__(self, scenario: Scenario, streams: Streams) -> None:
        specs, count = scenario.owners.behaviours, scenario.owners.count
        self.streams, self.labels = streams, behaviour_labels(scenario)
        self.behaviours: list[Behaviour] = [
            registry.behaviours.create(spec.name, **spec.options) for spec in specs
        ]
        self.begins = np.array([spec.from_round for spec in specs])
        orders = [
            streams.generator(Purpose.BEHAVIOUR, place).permutation(count)
            for place in range(len(specs))
        ]
        self.code = first_free(count, [spec.share for spec in specs], orders)

    def acting(self, owners: Ints, round_number: int) -> Codes:
        """(n,) the behaviour by which each owner bids in a round."""
        return begun(self.code[owners], self.begins, round_number)
