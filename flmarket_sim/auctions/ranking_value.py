"""What auctions that rank owners count the whole sale of an owner as.

Such an auction orders owners by what they ask for one unit of value. The paper's unit is a record
sold at a privacy loss of one. In a market whose error is mostly noise, records hardly count and
another unit serves the buyer better (docs/theory.md, section 7).

A single-minded owner cannot gain by a misreport as long as her value does not rise when she reports
a smaller privacy budget or fewer records. So a value must be positive, and non-decreasing in both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.author_frames import described
from flmarket_sim.errors import ContractError, InputError, did_you_mean, shown
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.plugins.plugin_files import attribute_of

Floats = NDArray[np.float64]
Value = Callable[[Floats, Floats], Floats]
RECORDS_LOSS, LOSS_SQUARED, PRECISION = "records-loss", "loss-squared", "precision"
TEMPERED = "tempered"
VALUES = (RECORDS_LOSS, LOSS_SQUARED, PRECISION, TEMPERED)
LEAST = 1e-290  # values of next to no privacy are not rounded to 0


class RanksByValue:
    """An auction that ranks owners by what they ask for a unit of value.

    `value` is what a whole sale counts as:

    "records-loss"      records times privacy budget, as in the paper
    "loss-squared"      the square of the privacy budget, whatever the records
    "precision"         1 / V(privacy budget), V being the variance of the market that the auction
                        is set for (`in_market`); the paper's 8 / e^2 before
    "tempered"          records to the power of 3/4 times privacy budget: between the first two, for
                        a buyer who wants records and cannot use all of a large owner's
    "module:function"   function(privacy_budget, data_size), arrays (K, n) in, positive numbers
                        (K, n) out. It must be non-decreasing in both: otherwise owners can gain by
                        reporting less than they have. "path/to/file.py:function" names one in a
                        file.
    """

    def __init__(self, value: str = RECORDS_LOSS) -> None:
        self.value = value
        self.error = coordinate_error()
        self._function = _imported(value) if value not in VALUES else None

    def in_market(self, error: MarketError) -> Self:
        """The same auction in a market that counts this error."""
        other = copy.copy(self)
        other.error = error
        return other

    def amounts(self, bids: BidBatch) -> Floats:
        """(K, n) what the whole sale of each owner counts as."""
        budget, size = bids.privacy_budget, bids.data_size
        if self.value == RECORDS_LOSS:
            return np.asarray(size * budget)
        if self.value == LOSS_SQUARED:
            return np.asarray(np.maximum(budget**2, LEAST))
        if self.value == PRECISION:
            return np.asarray(np.maximum(1.0 / self.error.variance(budget), LEAST))
        if self.value == TEMPERED:
            return np.asarray(size**0.75 * budget)
        assert self._function is not None
        return _checked(self.value, self._function, budget, size)


def _imported(name: str) -> Value:
    """The function behind module:function or path/to/file.py:function."""
    if ":" not in name:
        hint = did_you_mean(name, VALUES, ".")
        raise InputError(
            f"there is no value {shown(name)}{hint} Known: {', '.join(VALUES)}, or "
            "'module:function', or 'path/to/file.py:function'"
        )
    function = attribute_of(name, f"value {shown(name)}")
    if not callable(function):
        raise InputError(f"value {shown(name)} is not a function")
    checked: Value = function
    return checked


def _checked(name: str, function: Value, budget: Floats, size: Floats) -> Floats:
    """The amounts of a function from elsewhere; refuses what no ranking can use."""
    try:
        amounts = np.asarray(function(budget.copy(), size.copy()), np.float64)
    except Exception as error:  # foreign code may fail in any way
        raise ContractError(f"value {name!r} fails: {described(error)}") from error
    if amounts.shape != budget.shape:
        raise ContractError(
            f"value {name!r} must give numbers of shape {budget.shape}, got {amounts.shape}"
        )
    right = np.isfinite(amounts) & (amounts > 0)
    if not right.all():
        k, i = np.argwhere(~right)[0]
        raise ContractError(
            f"value {name!r} must be positive and finite; for a privacy budget of "
            f"{budget[k, i]:g} and {size[k, i]:g} records it is {amounts[k, i]}"
        )
    return amounts
