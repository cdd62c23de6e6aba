"""What sales are truly worth to their owners. The market computes true values of sales here alone.

The value of a sale is in proportion to the records that are sold (or to the size factor of the
owner's family), except for step owners: selling anything costs them the same, whatever they sell
and under how many names. The functions multiply in
different orders. The last digit of logged values depends on the order, so it must not change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.population import Population
from flmarket_sim.owners.valuation import STEP, size_factor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sale_values(
    people: Population, persons: Ints, records: Floats, loss: Floats, several_names: bool
) -> Floats:
    """(n,) values of sales that happen together. A step owner's cost is split over her names."""
    value = people.value(persons, loss, records)
    return value * step_shares(people, persons, records, loss) if several_names else value


def step_shares(people: Population, persons: Ints, records: Floats, loss: Floats) -> Floats:
    """(n,) the part of a step owner's cost that falls on each of her names: by records sold.

    It is 1 for all other owners, and for names that sell nothing.
    """
    _, group = np.unique(persons, return_inverse=True)
    selling = np.where(loss > 0, records, 0.0)
    total = np.bincount(group, selling)[group]
    split = (people.family[persons] == STEP) & (selling > 0)
    return np.where(split, records / np.maximum(total, 1e-300), 1.0)


def value_in_turn(
    people: Population, person: int, records: float, loss: float, sellers: set[int]
) -> float:
    """The value of one sale after the persons `sellers` have sold.

    A step owner has her cost with her first sale; further sales cost her nothing.
    """
    value = _value_of_all_records(people, person, loss)
    if people.family[person] == STEP:
        return 0.0 if person in sellers else value
    part, whole = _size_factors(people, person, records)
    return value * part / whole


def value_alone(people: Population, person: int, records: float, loss: float) -> float:
    """The value of a person's only sale."""
    value = _value_of_all_records(people, person, loss)
    if people.family[person] == STEP:
        return value
    part, whole = _size_factors(people, person, records)
    return value * (part / whole)


def size_shares(people: Population, persons: Ints, records: Floats, whole: Floats) -> Floats:
    """(n,) the part of the value of `whole` records that falls on `records` of them."""
    codes = people.family[persons]
    return np.asarray(size_factor(codes, records) / size_factor(codes, whole))


def _size_factors(people: Population, person: int, records: float) -> tuple[float, float]:
    """The size factors of some records of a person, and of all that she has."""
    codes = people.family[[person]]
    whole = people.data_size[[person]].astype(float)
    return float(size_factor(codes, np.array([records]))[0]), float(size_factor(codes, whole)[0])


def _value_of_all_records(people: Population, person: int, loss: float) -> float:
    return float(people.value(np.array([person]), np.array([loss]))[0])
