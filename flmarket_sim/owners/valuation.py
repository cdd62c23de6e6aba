"""What a privacy loss is worth to an owner (paper, section VI; docs/theory.md, section 6).

Symbols: e privacy loss, d data size, eb privacy budget, a rate. An owner of family f has the
valuation a g(d) f(e), where g(d) is d for most families; an owner of the family `step` loses a D EB
as soon as e > 0, with D and EB her true size and budget. Families are in families.py, and may come
from plug-ins (valuation_family.py has the contract).

All functions are elementwise over broadcastable arrays and take family codes (family_table.py).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.family_table import (
    EXPONENTIAL,
    FAMILIES,
    LINEAR,
    QUADRATIC,
    SQRT,
    STEP,
    Codes,
    by_family,
    family_codes,
    family_names,
    family_of,
    present,
)
from flmarket_sim.owners.valuation_family import DependsOnSize, Floats, slope

ROUNDING = 1e-9  # relative


def unit_value(codes: Codes, privacy_loss: Floats) -> Floats:
    """Value for one record and a rate of 1; for a `step` owner 1 if the loss is positive."""
    e = np.asarray(privacy_loss, float)
    return by_family(codes, e, lambda _, family, part: family.value(part))


def size_factor(codes: Codes, data_size: Floats) -> Floats:
    """What multiplies the value of one record: the records, unless the family says otherwise."""
    size = np.asarray(data_size, float)
    if not any(isinstance(family_of(code), DependsOnSize) for code in present(codes)):
        return size
    return by_family(
        codes,
        size,
        lambda _, f, part: f.size_factor(part) if isinstance(f, DependsOnSize) else part,
    )


def in_proportion_to_size(code: int) -> bool:
    """Whether an owner's value is in proportion to the records that she sells."""
    return code != STEP and not isinstance(family_of(int(code)), DependsOnSize)


def value(
    codes: Codes, rate: Floats, data_size: Floats, privacy_loss: Floats, step_cost: Floats
) -> Floats:
    """Money that makes up for `privacy_loss` on `data_size` records.

    `step_cost` is what a single-minded owner loses by selling anything at all: rate x true size x
    true budget.
    """
    unit = unit_value(codes, privacy_loss)
    return np.where(codes == STEP, unit * step_cost, rate * size_factor(codes, data_size) * unit)


def covers(payment: Floats | float, value: Floats | float) -> NDArray[np.bool_]:
    """Whether a rational owner accepts: the payment is at least the value, up to rounding."""
    return np.asarray(payment >= value * (1 - ROUNDING))


def loss_for_money(
    codes: Codes, rate: Floats, data_size: Floats, budget: Floats, money: Floats
) -> Floats:
    """The largest privacy loss within `budget` that is worth at most `money`: inverts `value`."""
    unit = np.maximum(money, 0.0) / (rate * size_factor(codes, data_size))
    all_or_nothing = np.where(unit >= budget, budget, 0.0)
    loss = by_family(
        codes,
        unit,
        lambda code, family, part: all_or_nothing if code == STEP else family.loss_for_money(part),
    )
    return np.asarray(np.minimum(loss, budget))


def marginal_value(codes: Codes, rate: Floats, data_size: Floats, privacy_loss: Floats) -> Floats:
    """Derivative of `value` in the privacy loss; 0 for step owners, whose value does not move."""
    e = np.asarray(privacy_loss, float)
    rise = by_family(codes, e, lambda _, family, part: slope(family, part))
    return np.asarray(rate * size_factor(codes, data_size) * rise)


__all__ = [
    "EXPONENTIAL",
    "FAMILIES",
    "LINEAR",
    "QUADRATIC",
    "SQRT",
    "STEP",
    "Codes",
    "Floats",
    "covers",
    "family_codes",
    "family_names",
    "in_proportion_to_size",
    "loss_for_money",
    "marginal_value",
    "size_factor",
    "unit_value",
    "value",
]
