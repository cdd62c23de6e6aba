"""How records are split over owners.

A partition needs the number of records of each class, not the records. `counts` gives numbers of
records (owners, classes), and `deal` turns them into records. A market without learning needs the
counts only, so it works without the data.
"""

from __future__ import annotations

from typing import Annotated, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.errors import InputError

Ints = NDArray[np.int64]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeastOne = Annotated[int, Field(ge=1)]
RECORDS = 2**20  # split at once


class Partition(Protocol):
    """counts(class_counts (C,), owners, rng) -> (owners, C) numbers of records."""

    name: str

    def counts(self, class_counts: Ints, owners: int, rng: np.random.Generator) -> Ints: ...


@runtime_checkable
class ChecksCounts(Partition, Protocol):
    """A partition whose `check` refuses, before a run starts, too few records for the owners."""

    def check(self, class_counts: Ints, owners: int) -> None: ...


@runtime_checkable
class KeepsOwners(Partition, Protocol):
    """A partition by the real owners of the data: `chosen` says which of them are in the market."""

    def chosen(self, owner_counts: Ints, owners: int) -> Ints: ...


class Iid:
    """IID with sizes by a power law (paper, VI-A).

    Each owner has `minimum` records; lognormal(0, sigma) weights split the rest.
    """

    name = "iid"

    def __init__(self, sigma: Positive = 2.0, minimum: AtLeastOne = 10) -> None:
        self.sigma, self.minimum = sigma, minimum

    def check(self, class_counts: Ints, owners: int) -> None:
        enough(int(class_counts.sum()), owners, self.minimum)

    def counts(self, class_counts: Ints, owners: int, rng: np.random.Generator) -> Ints:
        self.check(class_counts, owners)
        records = int(class_counts.sum())
        weights = rng.lognormal(0.0, self.sigma, owners)
        sizes = self.minimum + whole_shares(weights, records - self.minimum * owners)
        return split_classes(class_counts, sizes, rng)


class Dirichlet:
    """Non-IID: Dirichlet(alpha) splits each class, with `minimum` of the largest class each."""

    name = "dirichlet"

    def __init__(self, alpha: Positive = 0.5, minimum: AtLeastOne = 10) -> None:
        self.alpha, self.minimum = alpha, minimum

    def check(self, class_counts: Ints, owners: int) -> None:
        enough(int(class_counts.max()), owners, self.minimum)

    def counts(self, class_counts: Ints, owners: int, rng: np.random.Generator) -> Ints:
        self.check(class_counts, owners)
        largest = int(class_counts.argmax())
        table = np.empty((owners, len(class_counts)), np.int64)
        for label, count in enumerate(class_counts.tolist()):
            base = self.minimum if label == largest else 0
            weights = np.maximum(rng.standard_gamma(self.alpha, owners), 1e-300)
            table[:, label] = base + whole_shares(weights, count - base * owners)
        return table


class Shards:
    """Equal sizes: each owner gets `shards` random pieces of the records in order of class.

    This is the split of McMahan et al. (2017).
    """

    name = "shards"

    def __init__(self, shards: AtLeastOne = 2) -> None:
        self.shards = shards

    def check(self, class_counts: Ints, owners: int) -> None:
        enough(int(class_counts.sum()), self.shards * owners, 1)

    def counts(self, class_counts: Ints, owners: int, rng: np.random.Generator) -> Ints:
        self.check(class_counts, owners)
        pieces = self.shards * owners
        edges = np.arange(pieces + 1) * int(class_counts.sum()) // pieces
        class_ends = np.concatenate([[0], np.cumsum(class_counts)])
        inside = np.clip(edges[:, None], class_ends[:-1], class_ends[1:]) - class_ends[:-1]
        per_piece = np.diff(inside, axis=0)
        dealt = rng.permutation(pieces).reshape(owners, self.shards)
        return np.asarray(per_piece[dealt].sum(axis=1))


class Given:
    """The real owners: a column of the data says who holds which record.

    If the scenario has fewer owners than the data, they are those with the most records, and the
    records of the others are not used. The first of equals in the order of names comes first.
    """

    name = "given"

    def chosen(self, owner_counts: Ints, owners: int) -> Ints:
        """The numbers of the owners in the market, rising."""
        there = len(owner_counts)
        if owners > there:
            raise InputError(
                f"the data have {there:,} owners, but owners.count is {owners:,}; leave "
                "owners.count out to take all of them"
            )
        by_size = np.argsort(-owner_counts.sum(axis=1), kind="stable")
        return np.sort(by_size[:owners])

    def counts(self, class_counts: Ints, owners: int, rng: np.random.Generator) -> Ints:
        raise InputError("the partition 'given' needs the owners of the data, not numbers of them")


def enough(records: int, owners: int, minimum: int) -> None:
    """Refuses fewer than `minimum` records an owner."""
    if records < owners * minimum:
        raise InputError(
            f"{owners} owners with at least {minimum} records each need "
            f"{owners * minimum} records; there are {records}"
        )


def whole_shares(weights: NDArray[np.float64], total: int) -> Ints:
    """Whole numbers in proportion to the weights that sum to `total`, by largest remainders."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact = weights / weights.sum() * total
    if not np.isfinite(exact).all():
        raise InputError(
            "these weights cannot split records: they are not finite (is sigma or alpha too large?)"
        )
    shares = np.floor(exact).astype(np.int64)
    rest = total - int(shares.sum())
    if rest > 0:
        shares[np.argsort(shares - exact, kind="stable")[:rest]] += 1
    return np.asarray(shares)


def split_classes(class_counts: Ints, sizes: Ints, rng: np.random.Generator) -> Ints:
    """(owners, C): `sizes` records an owner, drawn without replacement; all records are used."""
    classes, owners = len(class_counts), len(sizes)
    labels = np.repeat(np.arange(classes, dtype=np.min_scalar_type(classes)), class_counts)
    rng.shuffle(labels)
    ends = np.cumsum(sizes)
    table = np.empty((owners, classes), np.int64)
    first = 0
    while first < owners:  # some owners at a time, since there are many more records than owners
        begin = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, begin + RECORDS, side="right")), first + 1)
        cell = (
            np.repeat(np.arange(last - first) * classes, sizes[first:last])
            + labels[begin : int(ends[last - 1])]
        )
        table[first:last] = np.bincount(cell, minlength=(last - first) * classes).reshape(
            -1, classes
        )
        first = last
    return table


def held(owners: Ints, chosen: Ints) -> tuple[Ints, Ints]:
    """Records of the chosen owners, as `deal` gives them: an owner's own are in their order."""
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=int(chosen.max()) + 1)
    kept = np.zeros(len(sizes), bool)
    kept[chosen] = True
    rows = order[kept[owners[order]]]
    return rows, np.concatenate([[0], np.cumsum(sizes[chosen])])


def deal(labels: NDArray[np.int64], counts: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Records of each owner: `rows[offsets[i]:offsets[i + 1]]` are row numbers of the data set."""
    classes = counts.shape[1]
    offsets = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    cell_end = np.cumsum(counts, axis=1)
    cell_start = offsets[:-1, None] + cell_end - counts
    rows = np.empty(int(offsets[-1]), np.int64)
    for label in range(classes):
        members = rng.permutation(np.flatnonzero(labels == label))
        take = counts[:, label]
        ends = np.cumsum(take)
        place = np.repeat(cell_start[:, label] - (ends - take), take) + np.arange(int(ends[-1]))
        rows[place] = members[: int(ends[-1])]
    return rows, offsets
