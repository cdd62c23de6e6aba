"""Data sets from arrays, frames and torch data sets; `prepare` checks them as it does files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, did_you_mean, shown
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.preparation import Preparation, prepare
from flmarket_sim.learning.records import NameColumn, Records, Roles, name_column, records_of_table

MOST_RECORDS = 10**8  # of a torch data set, which is read record by record


def dataset_of_arrays(
    x: Any,
    y: Any,
    test: Any,
    classes: Sequence[str] | None,
    owners: Any,
    options: Mapping[str, Any],
) -> Dataset:
    """See `Dataset.from_arrays`."""
    how = preparation({"constant": "keep", **options})
    train = _records("the arrays", x, y, owners)
    if isinstance(test, tuple):
        if len(test) != 2:
            raise InputError(f"data: test must be a share or a pair (x, y), got {len(test)} values")
        held_out: float | Records = _records("the test arrays", *test, None)
    else:
        held_out = share(test)
    if classes is not None:
        train = _with_classes(train, classes)
        if isinstance(held_out, Records):
            held_out = _with_classes(held_out, classes)
    return prepare(train, held_out, how)


def dataset_of_frame(frame: Any, roles: Roles, test: Any, options: Mapping[str, Any]) -> Dataset:
    """See `Dataset.from_pandas`."""
    how = preparation(options)
    train = records_of_table(_arrow(frame), roles, "the frame")
    if isinstance(test, float | int) or np.ndim(test) == 0:
        return prepare(train, share(test), how)
    table = _arrow(test)
    there = set(table.column_names)
    ignored = ({*roles.ignore} | ({roles.owner} if roles.owner else set())) & there
    return prepare(
        train,
        records_of_table(
            table, replace(roles, owner=None, ignore=tuple(ignored)), "the test frame"
        ),
        how,
    )


def dataset_of_torch(
    dataset: Any, test: Any, classes: Sequence[str] | None, owners: Any, options: Mapping[str, Any]
) -> Dataset:
    """See `Dataset.from_torch`."""
    x, y = _torch_arrays(dataset)
    if classes is None and isinstance(getattr(dataset, "classes", None), list | tuple):
        classes = [str(name) for name in dataset.classes]
    held_out = test if isinstance(test, float | int) else _torch_arrays(test)
    return dataset_of_arrays(x, y, held_out, classes, owners, options)


def preparation(options: Mapping[str, Any]) -> Preparation:
    """The options of a caller, checked."""
    known = [field.name for field in fields(Preparation)]
    for key in options:
        if key not in known:
            hint = did_you_mean(key, known, ".")
            raise InputError(f"data: there is no option {key!r}{hint} Options: {', '.join(known)}")
    return Preparation(**options)


def share(test: Any) -> float:
    """A test share as a number."""
    if isinstance(test, bool) or not isinstance(test, float | int | np.number):
        raise InputError(f"data: test must be a share or test records, got {shown(test)}")
    return float(test)


def _records(source: str, x: Any, y: Any, owners: Any) -> Records:
    numbers = _array(x, f"the features of {source}")
    if numbers.ndim < 2:
        raise InputError(
            f"data: the features of {source} must have shape (records, features), "
            f"got {numbers.shape}"
        )
    if not numbers.size:
        raise InputError(f"data: the features of {source} are empty: shape {numbers.shape}")
    try:
        numbers = numbers.reshape(len(numbers), -1).astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"data: the features of {source} must be numbers, got {numbers.dtype}; "
            "Dataset.from_pandas takes texts too"
        ) from None
    label = _names(y, f"the labels of {source}", len(numbers))
    owner = None if owners is None else _names(owners, f"the owners of {source}", len(numbers))
    columns = tuple(f"x[:, {i}]" for i in range(numbers.shape[1]))
    return Records(source, columns, numbers, {}, label, owner)


def _array(values: Any, what: str) -> NDArray[Any]:
    """An array of anything like one; a tensor is taken from its device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"data: {what} cannot become an array: {error}") from None


def _names(values: Any, what: str, records: int) -> NameColumn:
    array = _array(values, what)
    if array.shape != (records,):
        raise InputError(f"data: {what} must have shape ({records},), got {array.shape}")
    try:
        column = pa.chunked_array([pa.array(array.tolist(), from_pandas=True)])
    except pa.ArrowException:
        raise InputError(f"data: {what} mix numbers and texts") from None
    return name_column(column, what, "data")


def _with_classes(records: Records, classes: Sequence[str]) -> Records:
    """Records whose labels 0, 1, ... have names."""
    names = tuple(str(name) for name in classes)
    if len(set(names)) != len(names):
        raise InputError("data: classes must have different names")
    table = []
    for name in records.label.names:
        if not name.isdecimal() or int(name) >= len(names):
            raise InputError(
                f"data: label {shown(name)} is no number of the {len(names)} classes; they "
                f"are 0 to {len(names) - 1}"
            )
        table.append(int(name))
    codes = np.array([*table, -1], np.int64)[records.label.codes]
    return replace(records, label=NameColumn(names, codes))


def _arrow(frame: Any) -> pa.Table:
    try:
        if isinstance(frame, pa.Table):
            return frame
        if type(frame).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(frame, preserve_index=False)
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the frame cannot be read as a table: {shown(str(error))}") from None


def _torch_arrays(dataset: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """All records of a map-style data set, read one after the other."""
    tensors = getattr(dataset, "tensors", None)
    if isinstance(tensors, tuple) and len(tensors) == 2:
        return _array(tensors[0], "the features"), _array(tensors[1], "the labels")
    try:
        count = len(dataset)
    except TypeError:
        raise InputError(
            "data: a torch data set needs a length and pairs (features, label); one that only "
            "iterates must be turned into arrays first"
        ) from None
    if not 0 < count <= MOST_RECORDS:
        raise InputError(f"data: the torch data set has {count:,} records")
    first: NDArray[Any] | None = None
    labels: list[Any] = []
    for i in range(count):
        pair = dataset[i]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"data: record {i} of the torch data set is no (features, label)")
        row = _array(pair[0], f"record {i}").reshape(-1)
        if first is None:
            first = np.empty((count, len(row)), np.float32)
        if len(row) != first.shape[1]:
            raise InputError(
                f"data: record {i} of the torch data set has {len(row)} numbers, and the records "
                f"before it have {first.shape[1]}"
            )
        first[i] = row
        labels.append(pair[1].item() if hasattr(pair[1], "item") else pair[1])
    assert first is not None
    return first, np.asarray(labels)
