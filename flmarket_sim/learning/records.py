"""Records before they are features: columns of numbers and of names, labels and owners.

A table of Arrow becomes `Records` here. What cannot become a feature is refused by the name of its
column, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, did_you_mean, shown

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MISSING = -1  # the code of a missing name
NAMED = 5  # columns or classes that a message names


@dataclass(frozen=True)
class NameColumn:
    """A column of names: record i has `names[codes[i]]`, and none where its code is MISSING."""

    names: tuple[str, ...]
    codes: Ints

    def take(self, rows: Ints) -> NameColumn:
        return NameColumn(self.names, self.codes[rows])


@dataclass(frozen=True)
class Records:
    """Records as columns.

    source   what messages call them: a file, "the frame", "the arrays"
    columns  names of the columns of `numbers`
    numbers  (records, columns), NaN where a value is missing
    texts    columns of names by their name
    label    the class of each record
    owner    who holds each record; None if the data do not say
    """

    source: str
    columns: tuple[str, ...]
    numbers: Floats
    texts: dict[str, NameColumn]
    label: NameColumn
    owner: NameColumn | None = None

    def __len__(self) -> int:
        return len(self.label.codes)

    def take(self, rows: Ints) -> Records:
        return replace(
            self,
            numbers=self.numbers[rows],
            texts={name: column.take(rows) for name, column in self.texts.items()},
            label=self.label.take(rows),
            owner=None if self.owner is None else self.owner.take(rows),
        )


@dataclass(frozen=True)
class Roles:
    """Which column of a table is what.

    features  the columns to learn from; None: all that have no other role
    ignore    columns to leave out
    codes     columns of numbers that stand for names: they count as text
    """

    label: str
    owner: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    codes: Sequence[str] = ()


def records_of_table(table: pa.Table, roles: Roles, source: str) -> Records:
    """The records of a table. Columns of numbers and truth values are numbers, texts are names."""
    _check_names(table, roles, source)
    if not table.num_rows:
        raise InputError(f"{source} has no records")
    others = {roles.label, roles.owner, *roles.ignore}
    chosen = [name for name in table.column_names if name not in others]
    if roles.features is not None:
        chosen = list(roles.features)
    if not chosen:
        raise InputError(f"{source} has no column to learn from besides {roles.label!r}")
    numbers: dict[str, Floats] = {}
    texts: dict[str, NameColumn] = {}
    for name in chosen:
        column = table.column(name)
        if name in roles.codes or _is_text(column.type):
            texts[name] = name_column(column, name, source)
        else:
            numbers[name] = _number_column(column, name, source)
    matrix = np.column_stack(list(numbers.values())) if numbers else np.empty((table.num_rows, 0))
    label = name_column(table.column(roles.label), roles.label, source)
    owner = roles.owner and name_column(table.column(roles.owner), roles.owner, source)
    return Records(source, tuple(numbers), matrix, texts, label, owner or None)


def name_column(column: pa.ChunkedArray, name: str, source: str) -> NameColumn:
    """A column as names: texts in alphabetical order, whole numbers in their own."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return name_column(column.cast(kind.value_type), name, source)
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = _whole(column, name, source)
    elif not (_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise InputError(_unfit(source, name, kind, "texts, whole numbers or truth values"))
    coded = pc.dictionary_encode(column.combine_chunks())
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    values = coded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=lambda i: values[i])
    place = np.empty(len(values) + 1, np.int64)
    place[order] = np.arange(len(values))
    place[-1] = MISSING
    codes = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
    return NameColumn(tuple(_text(values[i]) for i in order), place[codes.astype(np.int64)])


def few(names: Iterable[object]) -> str:
    """Some names for a message: the first ones, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
    return ", ".join(shown(name) for name in listed[:NAMED]) + more


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in kinds)


def _number_column(column: pa.ChunkedArray, name: str, source: str) -> Floats:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _number_column(column.cast(kind.value_type), name, source)
    if pa.types.is_null(kind):
        raise InputError(
            f'{source}: column {name!r} has no value at all; leave it out: ignore = ["{name}"]'
        )
    if pa.types.is_boolean(kind):
        column = column.cast(pa.uint8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InputError(_unfit(source, name, kind, "numbers or texts"))
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)


def _whole(column: pa.ChunkedArray, name: str, source: str) -> pa.ChunkedArray:
    """Whole numbers that are stored as floats, for instance because some are missing."""
    floats = column.cast(pa.float64(), safe=False)
    floats = pc.if_else(pc.is_nan(floats), None, floats)
    whole = pc.and_(pc.is_finite(floats), pc.equal(floats, pc.round(floats)))
    whole = pc.and_(whole, pc.less(pc.abs(floats), 2.0**53))
    if pc.all(whole, min_count=0).as_py() is False:
        first = floats.filter(pc.invert(whole))[0].as_py()
        raise InputError(
            f"{source}: column {name!r} has fractions such as {first:g}, but classes and owners "
            "need names or whole numbers; name another column, or group its values first"
        )
    return floats.cast(pa.int64())


def _unfit(source: str, name: str, kind: pa.DataType, wanted: str) -> str:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return (
            f"{source}: column {name!r} has texts that are not in the expected encoding; name the "
            'file\'s own, for instance encoding = "latin-1"'
        )
    return (
        f"{source}: column {name!r} is of type {kind}, but {wanted} are needed; "
        f'convert it, or leave it out: ignore = ["{name}"]'
    )


def _check_names(table: pa.Table, roles: Roles, source: str) -> None:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{source} has several columns called {few(twice)}; rename them")
    asked = {
        "label": [roles.label],
        "owner": [] if roles.owner is None else [roles.owner],
        "features": list(roles.features or []),
        "ignore": list(roles.ignore),
        "codes": list(roles.codes),
    }
    for role, wanted in asked.items():
        for name in wanted:
            if name not in names:
                hint = did_you_mean(name, names, ".")
                raise InputError(
                    f"{source} has no column {shown(name)}, which {role} names{hint} "
                    f"Columns: {few(names)}"
                )
    if roles.owner == roles.label:
        raise InputError(f"{source}: {roles.label!r} cannot be both label and owner")
    unfit = [name for name in roles.features or () if name in (roles.label, roles.owner)]
    if unfit:
        raise InputError(
            f"{source}: {unfit[0]!r} is the label or the owner, so it cannot be a feature too"
        )
