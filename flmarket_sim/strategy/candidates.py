"""Misreports to try. Each function gives C candidates for each of G liars: shapes (C, G, ...)."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.family_table import FAMILIES
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.strategy.misreports import Floats, Liars, Misreports
from flmarket_sim.strategy.search_effort import Effort

JUST = 1e-6  # so much below or above another's valuation
DUST = 1e-3  # a rate that asks for next to nothing


def grid(liars: Liars, effort: Effort) -> Misreports:
    """The liar's own family at every rate, privacy budget and data size of the grid."""
    points = np.array(list(product(effort.rates, effort.budgets, effort.sizes)))
    return _types(liars, liars.family[None, :], points)


def families(liars: Liars, effort: Effort) -> Misreports:
    """Every family, the liar's own too, at the coarser grid."""
    points = np.array(list(product(effort.other_rates, effort.other_budgets, effort.other_sizes)))
    parts = [
        _types(liars, np.full((1, len(liars)), code, np.int8), points)
        for code in range(len(FAMILIES))
    ]
    return Misreports.stack(parts)


def budgets(liars: Liars, effort: Effort) -> Misreports:
    """The true valuation with many smaller privacy budgets, for owners of no built-in family.

    A table has its levels at shares of the budget, so a smaller budget moves the losses at which
    the table is exact. Owners of built-in families repeat the truth here.
    """
    share = np.linspace(1.0, 0.1, effort.moved_budgets)[:, None]
    share = np.where(liars.family >= len(FAMILIES), share, 1.0)
    size = np.broadcast_to(liars.data_size, share.shape)
    return liars.honest(share * liars.privacy_budget, size)


def shapes(liars: Liars, effort: Effort) -> Misreports:
    """Tables that no family has: one height up to a level, another above it, and flat tables. One
    of the heights is all of the buyer's money."""
    full = liars.truth().values[:, -1]
    heights = np.stack([factor * full for factor in effort.heights] + [liars.money])
    level = np.arange(1, liars.levels + 1)
    tables = []
    for low, high in product(range(len(heights)), repeat=2):
        below, above = np.minimum(heights[low], heights[high])[:, None], heights[high][:, None]
        jumps = level if low != high else [0]
        tables += [np.where(level <= jump, below, above) for jump in jumps]
    values = np.stack(_distinct(tables))
    whole = (
        np.broadcast_to(liars.privacy_budget, values.shape[:2]),
        np.broadcast_to(liars.data_size, values.shape[:2]),
    )
    return liars.feasible(Misreports(values, *whole))


def neighbours(liars: Liars, effort: Effort) -> Misreports:
    """The liar's own curve at three budgets, scaled so that her unit valuation is just below, or
    just above, each rival's."""
    parts = []
    unit = liars.truth().values[:, -1] / (liars.data_size * liars.privacy_budget)
    factor = liars.rivals.T / np.maximum(unit, 1e-300)  # (n - 1, G)
    for share in effort.other_budgets:
        budget = share * liars.privacy_budget
        honest = liars.honest(budget, liars.data_size)
        own = honest.values[:, -1] / (liars.data_size * budget)
        scale = factor * unit / np.maximum(own, 1e-300)
        for near in (1.0 - JUST, 1.0 + JUST):
            values = honest.values * (near * scale)[..., None]
            parts.append(
                Misreports(
                    values,
                    np.broadcast_to(budget, scale.shape),
                    np.broadcast_to(liars.data_size, scale.shape),
                    honest.stated.times(near * scale),
                )
            )
    return liars.feasible(Misreports.stack(parts))


def at_random(liars: Liars, count: int, rng: np.random.Generator) -> Misreports:
    """Random misreports: other families or rates, smaller budgets, fewer records, distorted levels,
    and levels at extreme prices."""
    shape = (count, len(liars))
    own = rng.random(shape) < 0.5
    family = np.where(own, liars.family, rng.integers(0, len(FAMILIES), shape)).astype(np.int8)
    rate = liars.rate * np.exp(rng.choice([0.3, 1.0], shape) * rng.standard_normal(shape))
    budget = liars.privacy_budget * np.where(
        rng.random(shape) < 0.5, 1.0, rng.uniform(0.05, 1.0, shape)
    )
    size = liars.data_size * np.where(rng.random(shape) < 0.7, 1.0, rng.uniform(0.05, 1.0, shape))
    reports = liars.table(family, rate, budget, np.maximum(np.floor(size), 1.0))
    values = reports.values
    crooked = rng.random(shape) < 0.35
    bent = values * np.exp(0.6 * rng.standard_normal(values.shape))
    values = np.where(crooked[..., None], bent, values)
    wild = rng.random(shape) < 0.25
    level = rng.integers(0, liars.levels, shape)
    jump = np.exp(rng.uniform(np.log(2.0), np.log(1e6), shape))
    above = np.arange(liars.levels) >= level[..., None]
    values = np.where(wild[..., None] & above, values * jump[..., None], values)
    tables = StatedValuations.tables(shape)
    stated = tables.where(crooked | wild, reports.stated)
    return liars.feasible(Misreports(values, reports.privacy_budget, reports.data_size, stated))


def around(
    liars: Liars, best: Misreports, scale: Floats, count: int, rng: np.random.Generator
) -> Misreports:
    """Reports near the best one: all of it, or one part, moved by about `scale` (G,)."""
    shape = (count, len(liars))
    part = rng.integers(0, 5, shape)

    def moves(parts: tuple[int, ...]) -> Floats:
        chosen = np.isin(part, parts)
        return np.where(chosen, np.exp(scale * rng.standard_normal(shape)), 1.0)

    values = best.values[None] * moves((0, 4))[..., None]
    bend = np.isin(part, (1, 4))[..., None]
    values = np.where(
        bend, values * np.exp(scale[None, :, None] * rng.standard_normal(values.shape)), values
    )
    budget = best.privacy_budget * moves((2, 4))
    size = best.data_size * moves((3, 4))
    # Half of the smaller offers have smaller values, too.
    follows = np.isin(part, (2, 3)) & (rng.random(shape) < 0.5)
    smaller = budget / best.privacy_budget * (size / best.data_size)
    values = np.where(follows[..., None], values * smaller[..., None], values)
    return liars.feasible(Misreports(values, budget, size))


def steps(liars: Liars, best: Misreports, size_of_step: float) -> Misreports:
    """One step up and one down along each part of the best report: all values, budget, records, and
    each level alone."""
    parts: list[Misreports] = []
    up_down = (np.exp(size_of_step), np.exp(-size_of_step))
    for factor in up_down:
        scaled = best.stated.times(np.array(factor))
        parts.append(Misreports(best.values * factor, best.privacy_budget, best.data_size, scaled))
        parts.append(Misreports(best.values, best.privacy_budget * factor, best.data_size))
        parts.append(Misreports(best.values * factor, best.privacy_budget * factor, best.data_size))
        parts.append(Misreports(best.values, best.privacy_budget, np.ceil(best.data_size * factor)))
        parts.append(
            Misreports(best.values * factor, best.privacy_budget, np.ceil(best.data_size * factor))
        )
    for m in range(liars.levels):
        for factor in up_down:
            values = best.values.copy()
            values[:, m] *= factor
            if factor < 1.0:  # what reports below must not stand in the way
                values[:, :m] = np.minimum(values[:, :m], values[:, m : m + 1])
            parts.append(Misreports(values, best.privacy_budget, best.data_size))
    return liars.feasible(Misreports.stack([part.at(None) for part in parts]))


def _types(liars: Liars, family: NDArray[np.int8], points: Floats) -> Misreports:
    """Reports of types (rate factor, budget share, size share), one for each row of `points`.

    A step owner's cost follows the reported type: that is the report of a smaller owner.
    """
    rate, budget, size = (points[:, j : j + 1] for j in range(3))
    records = np.maximum(np.floor(size * liars.data_size), 1.0)
    return liars.table(family, rate * liars.rate, budget * liars.privacy_budget, records)


def _distinct(tables: list[Floats]) -> list[Floats]:
    """Each table once; tables count as equal if they agree once they are made to rise."""
    seen: dict[bytes, Floats] = {}
    for table in tables:
        seen.setdefault(np.maximum.accumulate(table, axis=1).tobytes(), table)
    return list(seen.values())
