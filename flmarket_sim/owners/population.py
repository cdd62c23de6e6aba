"""The population as columns: the true types of all owners, and their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, plugin_errors
from flmarket_sim.learning.dataset import NO_OWNERS, Dataset, DatasetSource, HasOwners
from flmarket_sim.learning.partitions import KeepsOwners, Partition, deal, held
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import FAMILIES, codes_of_names, family_codes, named_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Budget, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_POPULATIONS = 400  # of a sample of markets


@dataclass(frozen=True)
class Population:
    """True types of N owners, each column (N,).

    `rows[offsets[i]:offsets[i + 1]]` are the records of owner i in the training data; both are None
    in a market without learning. `records_per_second` is None where computing takes no time.
    `names` are those of real owners, which a column of the data has; None for drawn owners.
    """

    family: NDArray[np.int8]
    rate: Floats
    privacy_budget: Floats
    data_size: Ints
    records_per_second: Floats | None = None
    rows: Ints | None = None
    offsets: Ints | None = None
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.rate)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"family": named_codes(self.family)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"family": codes_of_names(state["family"])})

    def types(self, owners: Ints) -> OwnerTypes:
        """The true types of some owners, in the shape of `owners`."""
        size = self.data_size[owners].astype(float)
        return OwnerTypes(self.family[owners], self.rate[owners], self.privacy_budget[owners], size)

    def profiles(self, owners: Ints) -> Profiles:
        """The true types of owners (K, n), or (n,) for one market."""
        return Profiles(*self.types(np.atleast_2d(owners)))

    def value(self, owners: Ints, privacy_loss: Floats, data_size: Floats | None = None) -> Floats:
        """What losses on `data_size` records (by default all) are worth to these owners."""
        return self.types(owners).value(privacy_loss, data_size)


class Holdings(NamedTuple):
    """Who holds what: the number of records of each owner, and the fields of `Population`."""

    data_size: Ints
    rows: Ints | None = None
    offsets: Ints | None = None
    names: tuple[str, ...] | None = None


def create_population(
    scenario: Scenario, streams: Streams, data: Dataset | None = None
) -> Population:
    """Draws the owners of a scenario. With the data, each owner gets her records too."""
    owners = scenario.owners
    source = registry.datasets.create(scenario.data.name, **scenario.data.options)
    partition = registry.partitions.create(owners.partition.name, **owners.partition.options)
    kinds = scenario.data.name, owners.partition.name
    if isinstance(partition, KeepsOwners):
        hold = _real_holdings(partition, source, owners.count, streams, data)
    else:
        hold = _drawn_holdings(partition, source, owners.count, streams, data, kinds)
    types = streams.generator(Purpose.TYPES)
    choices = family_codes(list(owners.families))
    family = choices[types.integers(0, len(choices), owners.count)]
    rate = types.uniform(*owners.rate, owners.count)
    privacy_budget = types.uniform(*owners.privacy_budget, owners.count)
    speed = None
    if owners.records_per_second is not None:
        speed = streams.generator(Purpose.SPEED).uniform(*owners.records_per_second, owners.count)
    size, rows, offsets, names = hold
    return Population(family, rate, privacy_budget, size, speed, rows, offsets, names)


def _drawn_holdings(
    partition: Partition,
    source: DatasetSource,
    owners: int,
    streams: Streams,
    data: Dataset | None,
    names: tuple[str, str],
) -> Holdings:
    rng = streams.generator(Purpose.PARTITION)
    with plugin_errors("data set", names[0]):
        counts = source.class_counts(streams) if data is None else np.bincount(data.train_y)
    with plugin_errors("partition", names[1]):
        table = partition.counts(np.asarray(counts, np.int64), owners, rng)
    if data is None:
        return Holdings(table.sum(axis=1))
    return Holdings(table.sum(axis=1), *deal(data.train_y, table, rng))


def _real_holdings(
    partition: KeepsOwners,
    source: DatasetSource,
    owners: int,
    streams: Streams,
    data: Dataset | None,
) -> Holdings:
    if data is None:
        if not isinstance(source, HasOwners):
            raise InputError(NO_OWNERS)
        counts = source.owner_counts(streams)
        return Holdings(counts[partition.chosen(counts, owners)].sum(axis=1))
    counts = data.owner_counts()
    chosen = partition.chosen(counts, owners)
    assert data.owners is not None
    names = tuple(data.owner_names[owner] for owner in chosen.tolist())
    return Holdings(counts[chosen].sum(axis=1), *held(data.owners, chosen), names)


def named_families(scenario: Scenario) -> tuple[str, ...]:
    """The families that the log of a run can name: the built-in ones, and those that the scenario
    gives its owners or lets them pretend."""
    pretended = [spec.options.get("family") for spec in scenario.owners.behaviours]
    named = [*FAMILIES, *scenario.owners.families, *(name for name in pretended if name)]
    return tuple(dict.fromkeys(map(str, named)))


def choose_bidders(
    streams: Streams, owners: int, bidders: int, buyer: int, round_number: int
) -> Ints:
    """The owners whom a buyer's auction asks in a round, whatever the policies are."""
    rng = streams.generator(Purpose.BIDDERS, buyer, round_number)
    return np.asarray(rng.choice(owners, bidders, replace=False, shuffle=True), dtype=np.int64)


def draw_money(streams: Streams, budget: Budget, buyer: int, rounds: int) -> Floats:
    """(rounds,) the buyer's amounts or factors, in order; the first do not depend on how many."""
    low, high = budget.factor or budget.amount or (0.0, 0.0)
    return np.asarray(streams.generator(Purpose.BUDGET, buyer).uniform(low, high, rounds))


def draw_profiles(
    scenario: Scenario, count: int, seed: int = 0, populations: int | None = None
) -> Profiles:
    """`count` markets of `market.bidders` owners each; no data are needed.

    Every experiment of the paper draws a population of its own, so the markets come from several
    populations of the scenario, `sample_populations(count)` by default. Market k comes from
    population k modulo their number, so that any first markets come from many populations.
    """
    number = sample_populations(count) if populations is None else populations
    streams = Streams(seed)
    seeds = streams.generator(Purpose.POPULATIONS, scenario.seed).integers(0, 2**63, number)
    owners, bidders = scenario.owners.count, scenario.market.bidders
    columns = [np.empty((count, bidders), dtype) for dtype in (np.int8, float, float, float)]
    population = np.arange(count) % number
    for p in range(number):
        rng = streams.generator(Purpose.PROFILES, scenario.seed, p)
        rows = np.flatnonzero(population == p)
        chosen = np.stack([rng.choice(owners, bidders, replace=False) for _ in rows])
        types = create_population(scenario, Streams(int(seeds[p]))).types(chosen)
        for column, values in zip(columns, types, strict=True):
            column[rows] = values
    family, rate, budget, size = columns
    return Profiles(family, rate, budget, size, population)


def sample_populations(count: int) -> int:
    """How many populations a sample of `count` markets comes from: two markets or more of each.

    The owners of a population differ little from market to market compared with those of another
    population, so many populations with few markets each tell the most about the paper's market.
    """
    return max(1, min(MOST_POPULATIONS, count // 2))


def draw_markets(
    scenario: Scenario, count: int, factors: list[float] | None, seed: int = 0
) -> tuple[Profiles, Floats]:
    """Profiles, and the budget factor of each market.

    There are `count` markets at each of the factors, the same ones at each; without factors, there
    are `count` markets at factors drawn uniformly from [0.1, 2].
    """
    truth = draw_profiles(scenario, count, seed)
    if factors is None:
        return truth, Streams(seed).generator(Purpose.BUDGET).uniform(0.1, 2.0, count)
    return truth.take(np.tile(np.arange(count), len(factors))), np.repeat(
        np.array(factors, float), count
    )
