"""The true types of owners, and what a sale is truly worth to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flmarket_sim.owners import valuation
from flmarket_sim.owners.family_table import NamedCodes, codes_of_names, named_codes
from flmarket_sim.owners.valuation import Codes, Floats

EXCEEDED = 1 + 1e-12  # times a privacy budget: a loss above this is more than the owner has


class OwnerTypes(NamedTuple):
    """Types of owners, as columns of one shape: family codes, rate, privacy budget, records."""

    family: Codes
    rate: Floats
    privacy_budget: Floats
    data_size: Floats

    def __reduce__(self) -> Any:
        return _types_by_name, (named_codes(self.family), *self[1:])

    def at(self, index: Any) -> OwnerTypes:
        """Some of the owners: any index of the columns."""
        return OwnerTypes(*(np.asarray(column)[index] for column in self))

    def value(self, privacy_loss: Floats, data_size: Floats | None = None) -> Floats:
        """Money that makes up for losses on `data_size` records (all of theirs by default).

        A step owner who sells anything loses rate x records x privacy budget of her true type.
        """
        size = self.data_size if data_size is None else data_size
        step_cost = self.rate * self.data_size * self.privacy_budget
        return valuation.value(self.family, self.rate, size, privacy_loss, step_cost)

    def utility(
        self, privacy_loss: Floats, payment: Floats, data_size: Floats | None = None
    ) -> Floats:
        """Payment minus true value; minus infinity where an owner sells more than she has."""
        too_much = privacy_loss > self.privacy_budget * EXCEEDED
        if data_size is not None:
            too_much |= data_size > self.data_size
        return np.where(too_much, -np.inf, payment - self.value(privacy_loss, data_size))

    def table(
        self, levels: int, privacy_budget: Floats | None = None, data_size: Floats | None = None
    ) -> Floats:
        """(..., M) true values at M equal shares of a privacy budget, on a number of records.

        Budget and records are the owners' own by default, and broadcast with the columns.
        """
        budget = self.privacy_budget if privacy_budget is None else privacy_budget
        loss = np.asarray(budget)[..., None] * (np.arange(1, levels + 1) / levels)
        size = self.data_size if data_size is None else data_size
        return self.at((..., None)).value(loss, np.asarray(size)[..., None])


def _types_by_name(family: NamedCodes, *columns: Floats) -> OwnerTypes:
    """The types that were pickled in another process, where families had other codes."""
    return OwnerTypes(codes_of_names(family), *columns)
