"""Valuations that reports state beside their tables, so that they can be read at any loss.

The table of a bid has values at shares of the reported privacy budget only. Who bids as an owner of
a family also says which, and how much money multiplies the family's value of one record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.owners.family_table import (
    STEP,
    Codes,
    codes_of_names,
    family_codes,
    family_names,
    named_codes,
)
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.valuation import Floats, size_factor, unit_value

TABLE = -1  # in place of a family: the report states no more than its table
SAME = 1e-9  # of the value at a level: what counts as agreeing with it


@dataclass(frozen=True)
class StatedValuations:
    """family codes or TABLE, and the scale that multiplies the family's value of one record; both
    of the same shape. A loss e is worth scale x value(e) to whoever makes the report."""

    family: Codes
    scale: Floats

    @classmethod
    def of(cls, types: OwnerTypes, data_size: Floats | None = None) -> StatedValuations:
        """The valuations of owners on `data_size` records (all of theirs by default)."""
        size = types.data_size if data_size is None else data_size
        family, rate, budget, whole, size = np.broadcast_arrays(
            types.family, types.rate, types.privacy_budget, types.data_size, size
        )
        scale = np.where(family == STEP, rate * whole * budget, rate * size_factor(family, size))
        return cls(np.array(family), np.asarray(scale))

    @classmethod
    def tables(cls, shape: tuple[int, ...]) -> StatedValuations:
        """Reports that state nothing but their tables."""
        return cls(np.full(shape, TABLE, np.int8), np.zeros(shape))

    def __getstate__(self) -> dict[str, Any]:
        stated = self.family != TABLE
        return {"stated": stated, "named": named_codes(self.family[stated]), "scale": self.scale}

    def __setstate__(self, state: dict[str, Any]) -> None:
        family = np.full(state["stated"].shape, TABLE, np.int8)
        family[state["stated"]] = codes_of_names(state["named"])
        vars(self).update({"family": family, "scale": state["scale"]})

    def names(self) -> list[str | None]:
        """The families by name, for files; None for tables. In one row, by rows."""
        stated = self.family.ravel() != TABLE
        names = np.full(self.family.size, None, object)
        names[stated] = family_names(self.family.ravel()[stated])
        return [None if name is None else str(name) for name in names]

    @classmethod
    def named(cls, names: list[str | None], scale: Floats) -> StatedValuations:
        """What `names` was of, in the shape of `scale`."""
        stated = np.array([name is not None for name in names], bool)
        family = np.full(len(names), TABLE, np.int8)
        family[stated] = family_codes(np.array([name for name in names if name], str))
        return cls(family.reshape(scale.shape), scale)

    def at(self, index: Any) -> StatedValuations:
        """Some of them: any index of the columns."""
        return StatedValuations(np.asarray(self.family[index]), np.asarray(self.scale[index]))

    def times(self, factor: Floats) -> StatedValuations:
        """The same families at `factor` times the value."""
        family, scale = np.broadcast_arrays(self.family, self.scale * factor)
        return StatedValuations(np.array(family), np.array(scale))

    def where(self, mask: NDArray[np.bool_], other: StatedValuations) -> StatedValuations:
        """These where `mask`, the others elsewhere."""
        return StatedValuations(
            np.where(mask, self.family, other.family), np.where(mask, self.scale, other.scale)
        )

    def replaced(self, index: Any, other: StatedValuations) -> StatedValuations:
        """A copy in which `other` stands at `index`."""
        family, scale = self.family.copy(), self.scale.copy()
        family[index], scale[index] = other.family, other.scale
        return StatedValuations(family, scale)

    @classmethod
    def stack(cls, parts: list[StatedValuations]) -> StatedValuations:
        """All of several parts, along the first axis."""
        return cls(
            np.concatenate([part.family for part in parts]),
            np.concatenate([part.scale for part in parts]),
        )

    def where_they_agree(self, values: Floats, privacy_budget: Floats) -> StatedValuations:
        """These where they are the tables (..., M) at the levels of the budgets; TABLE elsewhere.

        Every level counts by its own value: next to a highest value of 10^17 an ask of 233 is not
        rounding. A table that was changed after its valuation was stated counts as it is.
        """
        levels, stated = values.shape[-1], self.family != TABLE
        known = np.where(stated, self.family, STEP)
        close = np.array(stated)
        for m in range(levels):
            with np.errstate(over="ignore", invalid="ignore"):  # worth more than any number
                at_level = self.scale * unit_value(known, privacy_budget * ((m + 1) / levels))
                close &= np.abs(at_level - values[..., m]) <= SAME * values[..., m]
        return StatedValuations(np.where(close, self.family, TABLE).astype(np.int8), self.scale)
