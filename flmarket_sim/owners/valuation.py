"""What a privacy loss is worth to an owner (paper, section VI; docs/theory.md, section 6).

Symbols: e privacy loss, d data size, eb privacy budget, a rate.

    linear       2 a d e              sqrt         2 a d sqrt(e)
    quadratic    a d e^2              exponential  a d (exp(e) - 1)
    step         a D EB as soon as e > 0, with D and EB the owner's true size and budget

All functions are elementwise over broadcastable arrays and take family codes, the positions in
`FAMILIES`.
"""

from __future__ import annotations

import difflib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError

Floats = NDArray[np.float64]
Codes = NDArray[np.int8]

FAMILIES = ("linear", "quadratic", "sqrt", "exponential", "step")
LINEAR, QUADRATIC, SQRT, EXPONENTIAL, STEP = range(len(FAMILIES))
ROUNDING = 1e-9  # relative


def family_codes(family: ArrayLike) -> Codes:
    """Codes of an array of family names; integer arrays pass through."""
    names = np.asarray(family)
    if names.dtype.kind in "iu":
        if names.size and (names.min() < 0 or names.max() >= len(FAMILIES)):
            raise InputError(f"family codes must lie in 0..{len(FAMILIES) - 1}")
        return names.astype(np.int8)
    codes = np.full(names.shape, -1, np.int8)
    for code, name in enumerate(FAMILIES):
        codes[names == name] = code
    if (codes < 0).any():
        wrong = str(names[codes < 0].flat[0])
        near = difflib.get_close_matches(wrong, FAMILIES, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"unknown valuation family {wrong!r}; known are {', '.join(FAMILIES)}{hint}"
        )
    return codes


def family_names(codes: ArrayLike) -> NDArray[np.str_]:
    return np.asarray(np.asarray(FAMILIES)[np.asarray(codes)])


def unit_value(codes: Codes, privacy_loss: Floats) -> Floats:
    """Value for one record and a rate of 1; for a `step` owner 1 if the loss is positive."""
    e = np.asarray(privacy_loss, float)
    with np.errstate(
        over="ignore"
    ):  # np.choose wants all families at e, also those that nobody here has
        return np.choose(
            codes, [2.0 * e, e * e, 2.0 * np.sqrt(e), np.expm1(e), (e > 0).astype(float)]
        )


def value(
    codes: Codes, rate: Floats, data_size: Floats, privacy_loss: Floats, step_cost: Floats
) -> Floats:
    """Money that makes up for `privacy_loss` on `data_size` records.

    `step_cost` is what a single-minded owner loses by selling anything at all: rate x true size x
    true budget.
    """
    unit = unit_value(codes, privacy_loss)
    return np.where(codes == STEP, unit * step_cost, rate * data_size * unit)


def covers(payment: Floats | float, value: Floats | float) -> NDArray[np.bool_]:
    """Whether a rational owner accepts: the payment is at least the value, up to rounding."""
    return np.asarray(payment >= value * (1 - ROUNDING))


def loss_for_money(
    codes: Codes, rate: Floats, data_size: Floats, budget: Floats, money: Floats
) -> Floats:
    """The largest privacy loss within `budget` that is worth at most `money`: inverts `value`."""
    unit = np.maximum(money, 0.0) / (rate * data_size)
    half = 0.5 * unit
    all_or_nothing = np.where(unit >= budget, budget, 0.0)
    loss = np.choose(codes, [half, np.sqrt(unit), half * half, np.log1p(unit), all_or_nothing])
    return np.asarray(np.minimum(loss, budget))


def marginal_value(codes: Codes, rate: Floats, data_size: Floats, privacy_loss: Floats) -> Floats:
    """Derivative of `value` in the privacy loss; 0 for step owners, whose value does not move."""
    e = np.asarray(privacy_loss, float)
    slope = np.choose(
        codes,
        [
            np.full_like(e, 2.0),
            2.0 * e,
            1.0 / np.sqrt(np.maximum(e, 1e-300)),
            np.exp(e),
            np.zeros_like(e),
        ],
    )
    return np.asarray(rate * data_size * slope)
