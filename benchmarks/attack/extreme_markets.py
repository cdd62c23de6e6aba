"""Markets of extreme numbers: from 1e-300 to 1e300, ties, zeros, subnormals, huge differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import FAMILIES, family_names

Floats = NDArray[np.float64]
Generator = np.random.Generator
OWNERS = (1, 2, 3, 5, 10, 30)
LEVELS = (1, 3, 8)
LARGEST_SIZE = 1e90  # aggregation rules refuse sizes above 1e100 by name
LARGEST_TOTAL = 1e300  # of all that is asked for in a market


@dataclass(frozen=True)
class ExtremeMarkets:
    """K markets of n owners: true types, the buyers' money (K,), and tables that nearly tell.

    `near` (K, n) is what multiplies the tables of values, next to 1; None for exact reports, which
    also state their families.
    """

    truth: Profiles
    money: Floats
    levels: int
    near: Floats | None = None

    def __len__(self) -> int:
        return len(self.money)

    def bids(self) -> BidBatch:
        exact = self.truth.bids(self.levels)
        if self.near is None:
            return exact
        tables = np.maximum.accumulate(exact.values * self.near, axis=2)
        return BidBatch(tables, exact.privacy_budget, exact.data_size)

    def take(self, rows: Any) -> ExtremeMarkets:
        near = None if self.near is None else self.near[rows]
        return replace(self, truth=self.truth.take(rows), money=self.money[rows], near=near)

    def owners(self, kept: list[int]) -> ExtremeMarkets:
        """The same markets with some of their owners."""
        near = None if self.near is None else self.near[:, kept]
        truth = Profiles(*(column[:, kept] for column in self.truth.types))
        return replace(self, truth=truth, near=near)

    def code(self) -> str:
        """Python that makes the first market again."""
        types = self.truth.types.at(slice(0, 1))
        names = [[str(name) for name in family_names(types.family[0])]]
        columns = ", ".join(str(column.tolist()) for column in types[1:])
        truth = f"fm.Profiles({names}, {columns})"
        if self.near is None:
            return f"{truth}.bids({self.levels})"
        near = f"np.array({self.near[:1].tolist()})"
        return f"ExtremeMarkets({truth}, np.zeros(1), {self.levels}, {near}).bids()"


def draw(rng: Generator, count: int) -> ExtremeMarkets:
    """Markets of one number of owners and levels, each of a kind of its own.

    Markets that ask for more than can be added up are left out, so there may be fewer.
    """
    shape = count, int(rng.choice(OWNERS))
    levels = int(rng.choice(LEVELS))
    kind = rng.integers(len(KINDS), size=count)
    columns = np.empty((3, *shape))
    for number, make in enumerate(KINDS):
        columns[:, kind == number] = make(rng, (int((kind == number).sum()), shape[1]))
    one_family = rng.random((count, 1)) < 0.4
    family = np.where(
        one_family,
        rng.integers(len(FAMILIES), size=(count, 1)),
        rng.integers(len(FAMILIES), size=shape),
    )
    columns[1, family == FAMILIES.index("exponential")] %= 600.0
    rate, budget, size = columns[0], columns[1], np.clip(np.floor(columns[2]), 1.0, LARGEST_SIZE)
    names = np.array(FAMILIES)[family]
    truth = Profiles(names, np.maximum(rate, 5e-324), np.maximum(budget, 5e-324), size)
    with np.errstate(all="ignore"):
        total = truth.types.table(levels).max(axis=2).sum(axis=1)
        fits = np.isfinite(total) & (total <= LARGEST_TOTAL)
    markets = ExtremeMarkets(truth, np.zeros(count), levels).take(fits)
    near = _near(rng, (*markets.truth.shape, levels)) if rng.random() < 0.25 else None
    return replace(markets, money=_money(rng, markets, total[fits]), near=near)


def _anywhere(rng: Generator, shape: tuple[int, ...], low: float, high: float) -> Floats:
    """Numbers of any size between powers of ten."""
    return np.asarray(10.0 ** rng.uniform(low, high, shape))


def _plain(rng: Generator, shape: tuple[int, int]) -> Floats:
    return np.stack(
        [rng.uniform(0.5, 1.5, shape), rng.uniform(0.5, 2.0, shape), rng.lognormal(4.0, 1.5, shape)]
    )


def _wild(rng: Generator, shape: tuple[int, int]) -> Floats:
    """Every number of any size."""
    return np.stack(
        [
            _anywhere(rng, shape, -300, 150),
            _anywhere(rng, shape, -300, 60),
            _anywhere(rng, shape, 0, 90),
        ]
    )


def _scaled(rng: Generator, shape: tuple[int, int]) -> Floats:
    """A plain market in other units of money and privacy."""
    units = np.stack(
        [
            _anywhere(rng, (shape[0], 1), low, high)
            for low, high in ((-290, 200), (-150, 40), (0, 50))
        ]
    )
    return np.asarray(_plain(rng, shape) * units)


def _alike(rng: Generator, shape: tuple[int, int]) -> Floats:
    """Owners who are all the same, or the same except for one bit."""
    one = _scaled(rng, (shape[0], 1)) if rng.random() < 0.5 else _plain(rng, (shape[0], 1))
    same = np.repeat(one, shape[1], axis=2)
    return np.where(rng.random(same.shape) < 0.2, np.nextafter(same, np.inf), same)


def _one_giant(rng: Generator, shape: tuple[int, int]) -> Floats:
    """One owner is many orders of magnitude larger or smaller than the others."""
    columns = _plain(rng, shape)
    columns[:, :, 0] *= _anywhere(rng, (3, shape[0]), -100, 60)
    return columns


def _subnormal(rng: Generator, shape: tuple[int, int]) -> Floats:
    """Rates and budgets at the lower end of what a number can be."""
    columns = _plain(rng, shape)
    columns[:2] *= _anywhere(rng, (2, shape[0], 1), -323, -300)
    return columns


KINDS: tuple[Callable[[Generator, tuple[int, int]], Floats], ...] = (
    _plain,
    _wild,
    _scaled,
    _alike,
    _one_giant,
    _subnormal,
)


def _near(rng: Generator, shape: tuple[int, int, int]) -> Floats:
    """Factors of tables next to 1, some by less than anybody tells apart."""
    far = _anywhere(rng, (shape[0], 1, 1), -17, -6)
    return np.asarray(1.0 + far * rng.uniform(-1, 1, shape))


def _money(rng: Generator, markets: ExtremeMarkets, total: Floats) -> Floats:
    """Nothing, anything, a share of everything, or just what some owner asks for."""
    count, owners = markets.truth.shape
    asked = markets.truth.bids(markets.levels).full_value[
        np.arange(count), rng.integers(owners, size=count)
    ]
    share = total * 10.0 ** rng.uniform(-2, 1, count)
    with np.errstate(all="ignore"):
        choices = np.stack(
            [
                np.zeros(count),
                _anywhere(rng, (count,), -300, 300),
                share,
                share,
                asked,
                np.nextafter(asked, 0.0),
                asked * np.minimum(owners, 3),
            ]
        )
    money = choices[rng.integers(len(choices), size=count), np.arange(count)]
    return np.asarray(np.where(np.isfinite(money), np.maximum(money, 0.0), 1.0))
