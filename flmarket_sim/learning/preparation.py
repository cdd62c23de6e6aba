"""From records to a data set: missing values, split, scaling, one-hot flags, and all checks.

Files, frames, arrays and torch data sets all go through `prepare`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, did_you_mean, shown
from flmarket_sim.learning.dataset import Dataset, Features, stratified_split, unit_scaled
from flmarket_sim.learning.records import MISSING, Floats, Ints, NameColumn, Records, few
from flmarket_sim.storage.untrusted_files import fits_memory

Standardise = Literal["unit", "z-score", "none"]
Missing = Literal["refuse", "mean", "drop"]
Categorical = Literal["one-hot", "refuse"]
Constant = Literal["refuse", "drop", "keep"]
MOST_CLASSES = 1_000
FARTHEST = 3.0  # standard deviations: "z-score" brings what lies beyond to here


class PreparationOptions(TypedDict, total=False):
    """The options of `Preparation`, for functions that pass them on."""

    standardise: Standardise
    missing: Missing
    categorical: Categorical
    most_categories: int
    constant: Constant


@dataclass(frozen=True)
class Preparation:
    """How records become features.

    standardise      "unit": to [0, 1] by the range of the training records, to which test records
                     are clipped. "z-score": mean 0 and standard deviation 1 by the training
                     records, clipped to [-3, 3]. "none": numbers stay as they are
    missing          "refuse" missing values, put the training "mean" in their place (a text that
                     is missing gets no flag), or "drop" their records
    categorical      "one-hot": a flag for each text of a column; or "refuse" texts
    most_categories  the largest number of flags for one column
    constant         columns with one value in the training records: "refuse", "drop" or "keep"
    """

    standardise: Standardise = "unit"
    missing: Missing = "refuse"
    categorical: Categorical = "one-hot"
    most_categories: int = 100
    constant: Constant = "refuse"

    def __post_init__(self) -> None:
        for key, kind in (
            ("standardise", Standardise),
            ("missing", Missing),
            ("categorical", Categorical),
            ("constant", Constant),
        ):
            value, allowed = getattr(self, key), get_args(kind)
            if value not in allowed:
                hint = did_you_mean(str(value), allowed, ".")
                listed = ", ".join(map(repr, allowed))
                raise InputError(f"data: {key} is {shown(value)}{hint} Allowed: {listed}")


def prepare(records: Records, test: float | Records, how: Preparation) -> Dataset:
    """The data set of records; `test` is the share of every class to test with, or the records."""
    records = _complete(records, how)
    _check_classes(records)
    if isinstance(test, Records):
        train, held_out = records, _like(_complete(test, how), records)
    else:
        rows = _split(records, test)
        train, held_out = records.take(rows[0]), records.take(rows[1])
    _check_texts(train, how)
    flags = sum(len(column.names) for column in train.texts.values())
    _check_memory(records.source, len(records), len(train.columns) + flags)
    if how.missing == "mean":
        train, held_out = _filled(train, held_out)
    train, held_out = _without_constants(train, held_out, how)
    numbers = _standardised(train, held_out, how.standardise)
    present = {name: np.unique(column.codes) for name, column in train.texts.items()}
    x = [
        np.concatenate([part, *(_flags(whose.texts[name], present[name]) for name in present)], 1)
        for part, whose in zip(numbers, (train, held_out), strict=True)
    ]
    owners, owner_names = _owners(train)
    classes = records.label.names
    return Dataset(
        x[0], train.label.codes, x[1], held_out.label.codes, classes, owners, owner_names
    ).check()


def _complete(records: Records, how: Preparation) -> Records:
    """Records without infinite numbers, and without missing values that nothing replaces."""
    infinite = np.isinf(records.numbers)
    if infinite.any():
        counts = _counted(records.columns, infinite.sum(axis=0))
        raise InputError(
            f"{records.source} has infinite numbers in {counts}; features must be finite. Mark "
            "them as missing, or leave the column out"
        )
    names = {**records.texts, "the label": records.label}
    if records.owner is not None:
        names["the owner"] = records.owner
    gaps = {name: column.codes == MISSING for name, column in names.items()}
    gaps_in_numbers = np.isnan(records.numbers)
    if how.missing == "drop":
        bad = gaps_in_numbers.any(axis=1)
        for gap in gaps.values():
            bad = bad | gap
        if bad.all():
            raise InputError(f"{records.source} has no record without a missing value")
        return records.take(np.flatnonzero(~bad)) if bad.any() else records
    numbers = dict(zip(records.columns, gaps_in_numbers.sum(axis=0).tolist(), strict=True))
    missing = numbers | {name: int(gap.sum()) for name, gap in gaps.items()}
    found = {name: count for name, count in missing.items() if count}
    always = {name: n for name, n in found.items() if name in ("the label", "the owner")}
    if how.missing == "mean" and always:
        counts = _counted(list(always), list(always.values()))
        raise InputError(
            f"{records.source} has missing values in {counts}, which no mean can replace; write "
            'missing = "drop" to leave these records out'
        )
    if how.missing == "refuse" and found:
        counts = _counted(list(found), list(found.values()))
        raise InputError(
            f"{records.source} has missing values in {counts}; write "
            'missing = "mean" to put the mean of the training records in their place, or '
            'missing = "drop" to leave these records out'
        )
    return records


def _counted(names: Any, counts: Any) -> str:
    """Columns with how many of their values are meant: 'age' (3), 'sex' (1)."""
    worth = [(name, int(count)) for name, count in zip(names, counts, strict=True) if count]
    texts = [f"{name if name.startswith('the ') else repr(name)} ({n:,})" for name, n in worth]
    more = f" and {len(texts) - 5:,} more columns" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more


def _check_classes(records: Records) -> None:
    classes = records.label.names
    present = np.unique(records.label.codes)
    if len(present) < 2:
        raise InputError(
            f"{records.source}: the label has one class ({few(classes)}); two are needed to learn"
        )
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"{records.source}: the label has {len(classes):,} different values, but at most "
            f"{MOST_CLASSES:,} classes are allowed; is it a number to be predicted?"
        )


def _split(records: Records, share: float) -> tuple[Ints, Ints]:
    if not 0 < share < 1:
        raise InputError(f"data: test must be a share between 0 and 1, got {share:g}")
    labels = records.label.codes
    counts = np.bincount(labels, minlength=len(records.label.names))
    small = [
        f"{name} ({count})"
        for name, count in zip(records.label.names, counts.tolist(), strict=True)
        if int(count * share) < 1 or count - int(count * share) < 1
    ]
    if small:
        least = int(np.ceil(max(1 / share, 1 / (1 - share)) - 1e-9))
        raise InputError(
            f"{records.source} has classes with too few records: {few(small)}. A test share of "
            f"{share:g} needs at least {least} of each; leave these records out, join classes, "
            "or name a test file"
        )
    return stratified_split(labels, share)


def _like(test: Records, train: Records) -> Records:
    """Test records in the columns and with the codes of the training records."""
    absent = [name for name in (*train.columns, *train.texts) if name not in
              (*test.columns, *test.texts)]  # fmt: skip
    if absent:
        raise InputError(f"{test.source} has no column {few(absent)}, which {train.source} has")
    kinds = [name for name in train.columns if name in test.texts]
    kinds += [name for name in train.texts if name in test.columns]
    if kinds:
        raise InputError(
            f"{few(kinds)} holds texts in one of {train.source} and {test.source}, and numbers in "
            "the other"
        )
    label = _recoded(test.label, train.label)
    unknown = label.codes == MISSING
    if unknown.any():
        codes = np.unique(test.label.codes[unknown])
        raise InputError(
            f"{test.source} has {int(unknown.sum()):,} records of classes that {train.source} "
            f"does not have: {few(test.label.names[code] for code in codes)}"
        )
    order = [test.columns.index(name) for name in train.columns]
    texts = {name: _recoded(test.texts[name], column) for name, column in train.texts.items()}
    return replace(
        test, columns=train.columns, numbers=test.numbers[:, order], texts=texts, label=label
    )


def _recoded(column: NameColumn, known: NameColumn) -> NameColumn:
    """The column with the codes of another; names that the other does not have are missing."""
    number = {name: code for code, name in enumerate(known.names)}
    table = np.array([number.get(name, MISSING) for name in column.names] + [MISSING], np.int64)
    return NameColumn(known.names, table[column.codes])


def _check_texts(records: Records, how: Preparation) -> None:
    if records.texts and how.categorical == "refuse":
        raise InputError(
            f"{records.source} has texts in {few(records.texts)}; write categorical = "
            '"one-hot" to make a flag of each text, or name the columns in ignore'
        )
    for name, column in records.texts.items():
        if len(column.names) > how.most_categories:
            raise InputError(
                f"{records.source}: column {name!r} has {len(column.names):,} different texts, "
                f"and a flag is made of each (at most {how.most_categories:,}); leave it out: "
                f'ignore = ["{name}"], or raise most_categories'
            )


def _check_memory(source: str, records: int, features: int) -> None:
    needed = 3 * 4 * records * features  # features, and two copies on the way
    if not fits_memory(needed):
        raise InputError(
            f"{source}: {records:,} records of {features:,} features would take "
            f"{needed / 2**30:,.1f} GB of memory, more than this machine has"
        )


def _filled(train: Records, test: Records) -> tuple[Records, Records]:
    """Both with the means of the training records in place of missing numbers."""
    gaps = np.isnan(train.numbers)
    whole = np.asarray(gaps.all(axis=0))
    if empty := [name for name, gap in zip(train.columns, whole, strict=True) if gap]:
        raise InputError(f"{train.source}: {few(empty)} has no value in the training records")
    means = np.nanmean(train.numbers, axis=0) if train.columns else np.empty(0)
    filled = [
        replace(part, numbers=np.where(np.isnan(part.numbers), means, part.numbers))
        for part in (train, test)
    ]
    return filled[0], filled[1]


def _without_constants(train: Records, test: Records, how: Preparation) -> tuple[Records, Records]:
    """Numbers that are equal in all training records, and texts with one value, are dealt with."""
    if how.constant == "keep":
        return train, test
    varies = np.ptp(train.numbers, axis=0) > 0 if train.columns else np.empty(0, bool)
    constant = [name for name, differs in zip(train.columns, varies, strict=True) if not differs]
    same = [name for name, column in train.texts.items() if len(np.unique(column.codes)) < 2]
    if not constant and not same:
        return train, test
    if how.constant == "refuse":
        raise InputError(
            f"{train.source}: {few([*constant, *same])} has one value in all training records, so "
            'nothing can be learnt from it; write constant = "drop", or name it in ignore'
        )
    kept = tuple(name for name in train.columns if name not in constant)
    parts = [
        replace(
            part,
            columns=kept,
            numbers=part.numbers[:, varies],
            texts={name: column for name, column in part.texts.items() if name not in same},
        )
        for part in (train, test)
    ]
    if not kept and not parts[0].texts:
        raise InputError(f"{train.source}: every column has one value in all training records")
    return parts[0], parts[1]


def _standardised(train: Records, test: Records, how: Standardise) -> tuple[Features, Features]:
    x, y = train.numbers, test.numbers
    if how == "unit":
        return unit_scaled(x, y) if len(train.columns) else (_single(x), _single(y))
    if how == "z-score" and len(train.columns):
        mean, deviation = x.mean(axis=0), x.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        x, y = (np.clip((part - mean) / deviation, -FARTHEST, FARTHEST) for part in (x, y))
    largest = np.finfo(np.float32).max
    for part in (x, y):
        too_large = np.asarray((np.abs(part) > largest).any(axis=0))
        if too_large.any():
            named = [name for name, bad in zip(train.columns, too_large, strict=True) if bad]
            raise InputError(
                f"{train.source}: {few(named)} has numbers beyond {largest:.0e}; write "
                'standardise = "unit"'
            )
    return _single(x), _single(y)


def _single(numbers: Floats) -> Features:
    return np.asarray(numbers, np.float32)


def _flags(column: NameColumn, present: Ints) -> Features:
    """(records, names) one-hot flags of the names that occur in the training records."""
    known: NDArray[np.int64] = present[present != MISSING]
    return np.asarray(column.codes[:, None] == known, np.float32)


def _owners(train: Records) -> tuple[Ints | None, tuple[str, ...]]:
    """The owner of each training record, among those who hold any."""
    if train.owner is None:
        return None, ()
    held, codes = np.unique(train.owner.codes, return_inverse=True)
    return codes.astype(np.int64), tuple(train.owner.names[code] for code in held.tolist())
