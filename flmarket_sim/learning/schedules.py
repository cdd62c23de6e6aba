"""How a buyer's learning rate changes from round to round: a multiplier of it for each round."""

from __future__ import annotations

import math
from typing import Annotated, Protocol

from pydantic import Field

from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.part import Plugin

Share = Annotated[float, Field(ge=0, le=1)]
Factor = Annotated[float, Field(gt=0, le=1)]
Rounds = Annotated[int, Field(ge=1)]


class Schedule(Protocol):
    """A pure function of the round; its options are constructor arguments."""

    name: str

    def multiplier(self, round_number: int, rounds: int) -> float:
        """What the learning rate is multiplied by in a round, counted from 0, of so many."""
        ...


class Constant:
    """The same learning rate in all rounds."""

    name = "constant"

    def multiplier(self, round_number: int, rounds: int) -> float:
        return 1.0


class Cosine:
    """Half a cosine, from 1 in the first round to `final` in the last one."""

    name = "cosine"

    def __init__(self, final: Share = 0.0) -> None:
        self.final = final

    def multiplier(self, round_number: int, rounds: int) -> float:
        turn = math.pi * round_number / max(rounds - 1, 1)
        return self.final + (1 - self.final) * (1 + math.cos(turn)) / 2


class InverseSqrt:
    """1 / sqrt(k) in the k-th round, counted from 1."""

    name = "inverse-sqrt"

    def multiplier(self, round_number: int, rounds: int) -> float:
        return 1 / math.sqrt(round_number + 1)


class StepSchedule:
    """Falls by `factor` after every `every` rounds."""

    name = "step"

    def __init__(self, every: Rounds, factor: Factor = 0.5) -> None:
        self.every, self.factor = every, factor

    def multiplier(self, round_number: int, rounds: int) -> float:
        return float(self.factor ** (round_number // self.every))


def create_schedule(spec: Plugin) -> Schedule:
    """The schedule of a scenario."""
    built: Schedule = registry.schedules.create(spec.name, **spec.options)
    return built


def learning_rate_at(schedule: Schedule, rate: float, round_number: int, rounds: int) -> float:
    """The learning rate of a round; refuses a multiplier that is not a finite number from 0 on."""
    with plugin_errors("schedule", schedule.name):
        multiplier = float(schedule.multiplier(round_number, rounds))
    if not 0 <= multiplier < math.inf:
        raise ContractError(
            f"schedule {schedule.name!r} must give a finite number of at least 0, but gives "
            f"{multiplier} in round {round_number} of {rounds}"
        )
    return rate * multiplier
