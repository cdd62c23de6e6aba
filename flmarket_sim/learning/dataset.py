"""The contract of a data set."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError, plugin_errors
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario

if TYPE_CHECKING:
    from flmarket_sim.learning.preparation import PreparationOptions

Features = NDArray[np.float32]
Labels = NDArray[np.int64]


class Origin(NamedTuple):
    """Where a loaded data set comes from: a hash of its table in a scenario, and of its arrays."""

    key: str
    sha256: str


@dataclass(frozen=True)
class Dataset:
    """Features (records, features) and class numbers (records,), to train and to test.

    Features are finite. Those of the built-in data sets lie in [0, 1], and a model may expect that
    none is much larger than 1: gradients are clipped, so a feature in large units drowns all
    others. `owners` (training records,) is the number of the owner who holds each record, and
    `owner_names` has their names; without real owners it is None, and a partition draws them.
    """

    train_x: Features
    train_y: Labels
    test_x: Features
    test_y: Labels
    classes: tuple[str, ...]
    owners: Labels | None = None
    owner_names: tuple[str, ...] = ()
    origin: Origin | None = field(default=None, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        held = "" if self.owners is None else f" of {len(self.owner_names):,} owners"
        return (
            f"<Dataset of {len(self.train_y):,} + {len(self.test_y):,} records{held} with "
            f"{np.shape(self.train_x)[-1]:,} features, {len(self.classes)} classes>"
        )

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any,
        test: float | tuple[Any, Any] = 0.2,
        *,
        classes: tuple[str, ...] | list[str] | None = None,
        owners: Any = None,
        **preparation: Unpack[PreparationOptions],
    ) -> Dataset:
        """A data set of arrays: features (records, ...) and labels (records,).

        `test` is the share of every class to test with, or the arrays (x, y) of the test records.
        Labels are names or whole numbers; `classes` names the numbers 0, 1, ... `owners`
        (records,) names who holds each record. See `Preparation` for the other options; a
        constant column is kept unless they say otherwise.
        """
        from flmarket_sim.learning.from_python import dataset_of_arrays

        return dataset_of_arrays(x, y, test, classes, owners, preparation)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        label: str,
        test: Any = 0.2,
        *,
        owner: str | None = None,
        features: list[str] | None = None,
        ignore: list[str] | None = None,
        codes: list[str] | None = None,
        **preparation: Unpack[PreparationOptions],
    ) -> Dataset:
        """A data set of a frame of pandas, polars or Arrow; its column `label` has the classes.

        `test` is the share of every class to test with, or another frame. The options are those of
        the data sets `csv` and `parquet` (docs/own-data.md).
        """
        from flmarket_sim.learning.from_python import dataset_of_frame
        from flmarket_sim.learning.records import Roles

        roles = Roles(label, owner, features, tuple(ignore or ()), tuple(codes or ()))
        return dataset_of_frame(frame, roles, test, preparation)

    @classmethod
    def from_torch(
        cls,
        dataset: Any,
        test: Any = 0.2,
        *,
        classes: tuple[str, ...] | list[str] | None = None,
        owners: Any = None,
        **preparation: Unpack[PreparationOptions],
    ) -> Dataset:
        """A data set of a torch `Dataset` of pairs (features, label), which has a length.

        Features of any shape become one row of numbers. `test` is a share or another torch data
        set. The classes are named by `classes`, or by the data set's own attribute `classes`.
        """
        from flmarket_sim.learning.from_python import dataset_of_torch

        return dataset_of_torch(dataset, test, classes, owners, preparation)

    def sha256(self) -> str:
        """A hash of everything in the data set: types, shapes, values, names."""
        names = [self.classes, self.owner_names]
        digest = hashlib.sha256(json.dumps(names).encode())
        for array in (self.train_x, self.train_y, self.test_x, self.test_y, self.owners):
            if array is not None:
                digest.update(f"{array.dtype.str} {array.shape} ".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def owner_counts(self) -> Labels:
        """(owners, classes) the training records of each owner and class."""
        if self.owners is None:
            raise InputError(NO_OWNERS)
        cells = self.owners * len(self.classes) + self.train_y
        shape = (len(self.owner_names), len(self.classes))
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def check(self) -> Dataset:
        """Refuses data that no model can learn from. It takes one pass over all records."""
        for part, x, y in (
            ("train", self.train_x, self.train_y),
            ("test", self.test_x, self.test_y),
        ):
            if (
                getattr(x, "ndim", 0) != 2
                or getattr(y, "ndim", 0) != 1
                or len(x) != len(y)
                or not len(y)
            ):
                shapes = f"{np.shape(x)} and {np.shape(y)}"
                raise InputError(
                    f"data: {part}_x and {part}_y must have shapes (records, features) and "
                    f"(records,), got {shapes}"
                )
            if not np.issubdtype(y.dtype, np.integer) or not np.issubdtype(x.dtype, np.floating):
                raise InputError(
                    f"data: {part}_x must be floats and {part}_y whole numbers, "
                    f"got {x.dtype} and {y.dtype}"
                )
            if y.min() < 0 or y.max() >= len(self.classes):
                row = int(np.flatnonzero((y < 0) | (y >= len(self.classes)))[0])
                raise InputError(
                    f"data: {part}_y[{row}] is {y[row]}; "
                    f"labels must lie in 0..{len(self.classes) - 1}"
                )
            if not np.isfinite(x.sum(dtype=np.float64)):
                row, column = np.argwhere(~np.isfinite(x))[0]
                raise InputError(
                    f"data: {part}_x[{row}, {column}] is {x[row, column]}; features must be finite"
                )
        if self.train_x.shape[1] != self.test_x.shape[1] or not self.train_x.shape[1]:
            raise InputError(
                f"data: train_x has {self.train_x.shape[1]} features "
                f"and test_x {self.test_x.shape[1]}"
            )
        self._check_owners()
        return self

    def _check_owners(self) -> None:
        if self.owners is None:
            return
        held = self.owners
        if getattr(held, "shape", None) != self.train_y.shape or not np.issubdtype(
            held.dtype, np.integer
        ):
            raise InputError(
                f"data: owners must be one whole number for each of the {len(self.train_y):,} "
                f"training records, got shape {np.shape(held)}"
            )
        counts = np.bincount(np.clip(held, 0, None), minlength=len(self.owner_names))
        if held.min() < 0 or len(counts) != len(self.owner_names) or not counts.all():
            raise InputError(
                f"data: owners must be numbers of the {len(self.owner_names):,} owner_names, and "
                "each of these must hold a record"
            )


NO_OWNERS = (
    "the data do not say who holds which record, so the partition 'given' has nothing to go by; "
    "name the column with `owner` in the data table (or give `owners` to Dataset.from_arrays), or "
    "choose another partition"
)


class DatasetSource(Protocol):
    """A data set by name. `class_counts` works without the data where the numbers are known."""

    name: str

    def class_counts(self, streams: Streams) -> NDArray[np.int64]: ...

    def load(self, streams: Streams) -> Dataset: ...


@runtime_checkable
class KnownShape(Protocol):
    """An optional ability of a data set: its shape is known without its data."""

    def shape(self) -> tuple[int, int]:
        """The number of features and the number of classes."""
        ...


@runtime_checkable
class HasOwners(DatasetSource, Protocol):
    """An optional ability of a data set: it knows the real owners of its training records."""

    def owner_counts(self, streams: Streams) -> NDArray[np.int64]:
        """(owners, classes) records of each owner; raises InputError if there are no owners."""
        ...


@runtime_checkable
class OwnFiles(DatasetSource, Protocol):
    """An optional ability of a data set: it reads files of the user, which may change."""

    def file_hashes(self) -> dict[str, str]:
        """The SHA-256 of each file by its path, as the scenario writes it."""
        ...


def data_source(scenario: Scenario) -> DatasetSource:
    """The plug-in that a scenario's data table names."""
    source: DatasetSource = registry.datasets.create(scenario.data.name, **scenario.data.options)
    return source


def read_data(scenario: Scenario) -> Dataset:
    """The data set that a scenario names, as every run of the scenario loads it."""
    with plugin_errors("data set", scenario.data.name):
        return data_source(scenario).load(Streams(scenario.seed))


def load_data(scenario: Scenario) -> Dataset:
    """The data set that a scenario names, as every run of the scenario loads it.

    The result knows where it comes from, so `fm.run(scenario, data=...)` need not load it again.
    """
    data = read_data(scenario)
    object.__setattr__(data, "origin", Origin(origin_key(scenario), data.sha256()))
    return data


def is_loaded(scenario: Scenario, data: Dataset) -> bool:
    """Whether a data set is the scenario's own, unchanged since `load_data`."""
    return (
        data.origin is not None
        and data.origin.key == origin_key(scenario)
        and data.origin.sha256 == data.sha256()
    )


def origin_key(scenario: Scenario) -> str:
    """Equal for scenarios with the same data table and seed."""
    return f"{scenario.data.model_dump_json()} {scenario.seed}"


def stratified_split(
    labels: Labels, test_share: float = 0.2
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows for training and for test, the same share of every class, the same for every seed."""
    rng = np.random.default_rng(20220101)
    train, test = [], []
    for label in range(int(labels.max()) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        cut = len(members) - int(len(members) * test_share)
        train.append(members[:cut])
        test.append(members[cut:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def unit_scaled(train: NDArray[np.float64], test: NDArray[np.float64]) -> tuple[Features, Features]:
    """Columns scaled to [0, 1] by the range of the training records, to which test is clipped."""
    low, high = train.min(axis=0), train.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    scale = [np.clip((x - low) / width, 0.0, 1.0).astype(np.float32) for x in (train, test)]
    return scale[0], scale[1]
