"""The world of a simulation: clock, population, random streams, log. No participant knows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import simpy
from numpy.typing import NDArray

from flmarket_sim.checks.consequences import Consequences
from flmarket_sim.errors import ContractError, plugin_errors
from flmarket_sim.eventlog import Log
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market.behaviour_cast import Cast
from flmarket_sim.market.bills import Bill
from flmarket_sim.market.cheat_cast import CheatCast
from flmarket_sim.market.delays import Delay
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.owners.family_table import positions_among
from flmarket_sim.owners.population import Population, choose_bidders, draw_money, named_families
from flmarket_sim.perturbation.perturbation import Perturbation
from flmarket_sim.plugins import registry
from flmarket_sim.privacy.noise import Noise, create_noise
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Budget, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TO_BUYER = 2**32 - 1  # the key of the buyer's delays, in place of a block of owners


class Observation(NamedTuple):
    """What only the simulator sees of a round, for the log."""

    privacy_sold: float
    value_sold: float
    true_error: float | None
    bound_of_data: float


class Randomiser(NamedTuple):
    """How gradients for one buyer are made private: the perturbation, and its randomness."""

    perturbation: Perturbation
    noise: Noise


@dataclass
class World:
    """One simulated world.

    observed  by buyer, what the simulator saw of her last round
    bills     by buyer and round, what is not paid yet
    cast      which owners have a behaviour; None if there are no behaviours
    cheating  which owners cheat after a sale; None if nobody does
    consequences  what follows for accused owners; None if the broker does not look for cheats
    randomisers  by buyer, how gradients are made private
    notes     sentences about the market that its users should read
    """

    scenario: Scenario
    env: simpy.Environment
    population: Population
    streams: Streams
    log: Log
    ledger: Ledger
    data: Dataset | None
    delay: Delay = field(init=False)
    randomisers: tuple[Randomiser, ...] = field(init=False)
    truthful_values: Floats = field(init=False)
    cast: Cast | None = field(init=False)
    cheating: CheatCast | None = field(init=False)
    consequences: Consequences | None = field(init=False)
    observed: dict[int, Observation] = field(default_factory=dict)
    bills: dict[tuple[int, int], Bill] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = self.scenario.market.delay
        self.delay = registry.delays.create(spec.name, **spec.options)
        self.randomisers = randomisers(self.scenario, self.streams)
        self.truthful_values = self._truthful_values()
        self.cast = Cast(self.scenario, self.streams) if self.scenario.owners.behaviours else None
        self.cheating = (
            CheatCast(self.scenario, self.streams, self.cast)
            if self.scenario.owners.cheats
            else None
        )
        self.consequences = consequences(self.scenario)
        self._families = named_families(self.scenario)
        self._bidders: dict[int, tuple[int, Ints]] = {}
        self._money: dict[int, Floats] = {}

    @property
    def casts(self) -> tuple[Cast | None, CheatCast | None]:
        """Who bids how, and who delivers how."""
        return self.cast, self.cheating

    def bidders(self, buyer: int, round_number: int) -> Ints:
        """The owners whom a buyer's auction asks in a round."""
        latest = self._bidders.get(buyer)
        if latest is None or latest[0] != round_number:
            count = self.scenario.market.bidders
            chosen = choose_bidders(self.streams, len(self.population), count, buyer, round_number)
            latest = self._bidders[buyer] = (round_number, chosen)
        return latest[1]

    def budget(self, spec: Budget, buyer: int, round_number: int) -> float:
        """A buyer's money for a round. A factor is of the true valuations of the asked owners."""
        if buyer not in self._money:
            self._money[buyer] = draw_money(self.streams, spec, buyer, self.scenario.rounds)
        money = float(self._money[buyer][round_number])
        if spec.factor is None:
            return money
        return money * float(self.truthful_values[self.bidders(buyer, round_number), -1].sum())

    def logged_families(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Families as the log has them."""
        return positions_among(self._families, codes)

    def delays(self, uniform: Floats) -> Floats:
        """The delays that the delay model makes, in seconds: finite and at least 0."""
        with plugin_errors("delay", self.delay.name):
            seconds = np.asarray(self.delay.seconds(uniform), dtype=np.float64)
        if seconds.shape != uniform.shape or not (np.isfinite(seconds) & (seconds >= 0)).all():
            raise ContractError(
                f"delay {self.delay.name!r} must give a finite delay of at least 0 for each number"
            )
        return seconds

    def buyer_delays(self, buyer: int, round_number: int) -> list[float]:
        """Seconds that announcement, delivery and payment take between buyer and broker."""
        if not self.delay.random:
            return list(map(float, self.delays(np.zeros(3))))
        uniform = self.streams.generator(Purpose.WORLD, buyer, round_number, TO_BUYER).random(3)
        return list(map(float, self.delays(uniform)))

    def _truthful_values(self) -> Floats:
        """(N, M) what owners truly ask at each level, computed level by level to save memory."""
        owners = np.arange(len(self.population))
        levels = self.scenario.market.levels
        table = np.empty((len(owners), levels))
        for m in range(1, levels + 1):
            table[:, m - 1] = self.population.value(
                owners, self.population.privacy_budget * (m / levels)
            )
        return table


def consequences(scenario: Scenario) -> Consequences | None:
    """What follows for accused owners, by the table [check] of a scenario; None without one."""
    spec = scenario.check
    if spec is None:
        return None
    kinds = frozenset(spec.consequences)
    times = (spec.deposit, spec.exclusion, spec.memory, spec.least_reputation)
    return Consequences(spec.level, kinds, *times)


def randomisers(scenario: Scenario, streams: Streams) -> tuple[Randomiser, ...]:
    """How the gradients of each buyer's market are made private.

    Raises InputError if the noise is not installed, or does not exist for a perturbation.
    """
    made = []
    for buyer in scenario.resolved_buyers():
        spec, privacy = buyer.perturbation, scenario.privacy
        perturbation = registry.perturbations.create(spec.name, **spec.options)
        noise = create_noise(privacy.noise, perturbation, privacy.clip, streams)
        made.append(Randomiser(perturbation, noise))
    return tuple(made)
