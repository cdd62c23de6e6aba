"""Owners' true types (`Profiles`) and their reports (`BidBatch`) in K markets of n owners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import InputError, shown
from flmarket_sim.owners.family_table import codes_of_names, family_codes, family_names, named_codes
from flmarket_sim.owners.owner_types import OwnerTypes
from flmarket_sim.owners.stated_valuation import StatedValuations

Floats = NDArray[np.float64]
MOST_LEVELS = 100_000


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None


def _matrix(name: str, values: ArrayLike, *, minimum: float, strict: bool = False) -> Floats:
    array = _numbers(name, values)
    if array.ndim != 2:
        raise InputError(f"{name} must have shape (K, n), got {array.shape}")
    wrong = ~np.isfinite(array) | (array <= minimum if strict else array < minimum)
    if wrong.any():
        k, i = np.argwhere(wrong)[0]
        sign = ">" if strict else ">="
        raise InputError(
            f"{name}[{k}, {i}] (market {k}, owner {i}) is {array[k, i]}; "
            f"it must be finite and {sign} {minimum:g}"
        )
    return array


@dataclass(frozen=True)
class Profiles:
    """True types of the owners of K markets.

    family          (K, n) names of valuation families (or their codes); kept as codes, and pickled
                    by name, because codes hold in one process only
    rate            (K, n) multiplies the family's value
    privacy_budget  (K, n) largest privacy loss the owner tolerates
    data_size       (K, n) records she owns
    population      (K,) number of the population that each market's owners belong to; None if each
                    market has a population of its own
    """

    family: Any
    rate: Any
    privacy_budget: Any
    data_size: Any
    population: Any = None

    def __post_init__(self) -> None:
        fields: dict[str, Any] = {
            "family": family_codes(self.family),
            "rate": _matrix("rate", self.rate, minimum=0.0, strict=True),
            "privacy_budget": _matrix(
                "privacy_budget", self.privacy_budget, minimum=0.0, strict=True
            ),
            "data_size": _matrix("data_size", self.data_size, minimum=1.0),
        }
        shapes = {name: array.shape for name, array in fields.items()}
        if len(set(shapes.values())) > 1:
            raise InputError(f"the columns of Profiles differ in shape: {shapes}")
        if self.population is not None:
            fields["population"] = np.asarray(self.population, np.int64)
            if fields["population"].shape != fields["rate"].shape[:1]:
                raise InputError(
                    f"population must have shape ({len(fields['rate'])},), one for each market, "
                    f"got {fields['population'].shape}"
                )
        for name, array in fields.items():
            object.__setattr__(self, name, array)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"family": named_codes(self.family)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"family": codes_of_names(state["family"])})

    def __repr__(self) -> str:
        markets, owners = self.shape
        return f"<Profiles of {markets:,} markets with {owners:,} owners each>"

    @property
    def shape(self) -> tuple[int, int]:
        k, n = self.rate.shape
        return int(k), int(n)

    @property
    def types(self) -> OwnerTypes:
        """The columns, to be indexed by owner."""
        return OwnerTypes(self.family, self.rate, self.privacy_budget, self.data_size)

    def value(self, privacy_loss: ArrayLike, data_size: ArrayLike | None = None) -> Floats:
        """(K, n) money that makes up for `privacy_loss` on `data_size` records (all of hers by
        default)."""
        size = None if data_size is None else np.asarray(data_size, float)
        return self.types.value(np.asarray(privacy_loss, float), size)

    def total_value(self) -> Floats:
        """(K,) what all owners ask together for all of their privacy budgets."""
        return np.asarray(self.value(self.privacy_budget).sum(axis=1))

    def utility(
        self, privacy_loss: Floats, payment: Floats, data_size: ArrayLike | None = None
    ) -> Floats:
        """(K, n) payment minus true value; minus infinity where more was sold than the owner has
        (paper, III-C)."""
        size = None if data_size is None else np.asarray(data_size, float)
        return self.types.utility(privacy_loss, payment, size)

    def bids(self, levels: int = 8) -> BidBatch:
        """The truthful report at `levels` equal shares of each privacy budget."""
        if not isinstance(levels, int | np.integer) or not 1 <= levels <= MOST_LEVELS:
            raise InputError(
                f"levels must be a whole number of at least 1 and at most {MOST_LEVELS}, "
                f"got {levels}"
            )
        with np.errstate(over="ignore"):
            values, stated = self.types.table(levels), StatedValuations.of(self.types)
        if not np.isfinite(values[..., -1]).all():
            k, i = np.argwhere(~np.isfinite(values[..., -1]))[0]
            raise InputError(
                f"market {k}, owner {i}: a privacy budget of {self.privacy_budget[k, i]:g} with "
                f"rate {self.rate[k, i]:g} and {self.data_size[k, i]:g} records is worth more than "
                f"any number ({family_names(self.family[k, i])} family)"
            )
        return BidBatch(values, self.privacy_budget, self.data_size, stated)

    def take(self, rows: Any) -> Profiles:
        """The markets `rows` (any index of the first axis)."""
        population = None if self.population is None else self.population[rows]
        return Profiles(*self.types.at(rows), population)


@dataclass(frozen=True)
class BidBatch:
    """Reports of the owners of K markets.

    values          (K, n, M) money asked for selling m/M of the reported budget, m = 1..M,
                    non-decreasing in m
    privacy_budget  (K, n) reported largest privacy loss
    data_size       (K, n) reported number of records
    stated          the reported valuations (K, n) as functions of the privacy loss, where they are
                    known; None if the tables are all there is. A stated valuation counts only where
                    it agrees with its table
    """

    values: Any
    privacy_budget: Any
    data_size: Any
    stated: StatedValuations | None = None

    def __post_init__(self) -> None:
        values = _numbers("values", self.values)
        budget = _matrix("privacy_budget", self.privacy_budget, minimum=0.0, strict=True)
        size = _matrix("data_size", self.data_size, minimum=1.0)
        if (
            values.ndim != 3
            or values.shape[2] < 1
            or not values.shape[:2] == budget.shape == size.shape
        ):
            raise InputError(
                "values must have shape (K, n, M) over privacy_budget and data_size of shape "
                f"(K, n), got {values.shape}, {budget.shape} and {size.shape}"
            )
        if self.stated is not None and self.stated.scale.shape != budget.shape:
            raise InputError(
                f"stated valuations must have shape {budget.shape}, got {self.stated.scale.shape}"
            )
        rising = np.diff(values, axis=2, prepend=0.0)
        if not np.isfinite(values).all() or (rising < 0).any():
            k, i, m = np.argwhere(~np.isfinite(values) | (rising < 0))[0]
            raise InputError(
                f"values[{k}, {i}] (market {k}, owner {i}) = {shown(values[k, i].tolist())} "
                f"is not a valuation: "
                f"it must be finite, at least 0 and "
                f"non-decreasing over the levels (level {m + 1} is not)"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "privacy_budget", budget)
        object.__setattr__(self, "data_size", size)

    def __repr__(self) -> str:
        markets, owners = self.shape
        return (
            f"<BidBatch of {markets:,} markets with {owners:,} owners each, {self.levels} levels>"
        )

    @property
    def shape(self) -> tuple[int, int]:
        k, n, _ = self.values.shape
        return int(k), int(n)

    @property
    def levels(self) -> int:
        return int(self.values.shape[2])

    @property
    def full_value(self) -> Floats:
        """(K, n) money asked for the whole reported budget: the V of single-minded mechanisms."""
        return np.asarray(self.values[:, :, -1])

    def at_levels(self, levels: int) -> Floats:
        """(K, n, levels) reported values at other shares of the budget, linear between reports, 0
        at level 0."""
        if levels == self.levels:
            return np.asarray(self.values)
        return self.value_at(self.privacy_budget[..., None] * (np.arange(1, levels + 1) / levels))

    def value_at(self, privacy_loss: Floats) -> Floats:
        """Reported values at any privacy losses (K, n, ...) up to the budget, linear between
        reports, 0 at level 0."""
        padded = np.concatenate([np.zeros((*self.shape, 1)), self.values], axis=2)
        extra = privacy_loss.ndim - 2
        budget = self.privacy_budget.reshape(*self.shape, *([1] * extra))
        place = np.clip(privacy_loss / budget, 0.0, 1.0) * self.levels
        low = np.minimum(place.astype(np.int64), self.levels - 1)
        share = place - low
        flat = low.reshape(*self.shape, -1)
        below = np.take_along_axis(padded, flat, axis=2).reshape(low.shape)
        above = np.take_along_axis(padded, flat + 1, axis=2).reshape(low.shape)
        return np.asarray(below + share * (above - below))

    def take(self, rows: Any) -> BidBatch:
        """The markets `rows` (any index of the first axis)."""
        stated = None if self.stated is None else self.stated.at(rows)
        return BidBatch(self.values[rows], self.privacy_budget[rows], self.data_size[rows], stated)

    def stated_valuations(self) -> StatedValuations:
        """What the reports state; `TABLE` where they state no more than their tables."""
        return StatedValuations.tables(self.shape) if self.stated is None else self.stated
