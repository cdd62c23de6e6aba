"""Checks for authors of data sets: does a data set keep the contract of learning/dataset.py?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flmarket_sim.errors import InputError, shortened
from flmarket_sim.learning.dataset import Dataset, HasOwners, KnownShape
from flmarket_sim.plugins import registry
from flmarket_sim.plugins.plugin_kind import require_contract
from flmarket_sim.randomness import Streams

LARGEST_FEATURE = 100.0


class NotADataset(AssertionError):
    """A data set breaks its contract; the message has everything that is wrong."""


def check_dataset(dataset: Any, seed: int = 0, **options: Any) -> Dataset:
    """Loads a data set twice and compares it with what it says about itself.

    The data set is an instance, a class, a name or "module:Class"; `options` are those of its
    constructor. Raises NotADataset with all complaints: features that are not finite or far from
    1, labels without a class, classes without records, a second load that differs, and numbers of
    records, features, classes and owners that are not those of the data. Returns the data.
    """
    made: Any = (
        registry.datasets.create(dataset, **options) if isinstance(dataset, str) else dataset
    )
    made = made(**options) if isinstance(made, type) else made
    kind = registry.datasets
    require_contract(type(made), type(made).__name__, kind.kind, kind.needs)
    complaints: list[str] = []
    data: Dataset | None = None
    try:
        data = made.load(Streams(seed))
        complaints += _data(made, data, seed)
        complaints += _facts(made, data, seed)
    except InputError as error:
        complaints.append(str(error))
    except Exception as error:  # foreign code may fail in any way
        complaints.append(f"it failed: {type(error).__name__}: {shortened(str(error))}")
    if complaints or data is None:
        listed = "\n".join(f"- {complaint}" for complaint in complaints)
        raise NotADataset(f"the data set {made.name!r} breaks its contract:\n{listed}")
    return data


def _data(source: Any, data: Any, seed: int) -> Iterator[str]:
    if not isinstance(data, Dataset):
        yield f"load must return a Dataset, got {type(data).__name__}"
        return
    data.check()
    if source.load(Streams(seed)).sha256() != data.sha256():
        yield "two loads with the same seed differ; draw with streams.generator(Purpose.DATA)"
    for part, labels in (("training", data.train_y), ("test", data.test_y)):
        absent = set(range(len(data.classes))) - set(np.unique(labels).tolist())
        if absent:
            names = ", ".join(repr(data.classes[label]) for label in sorted(absent)[:5])
            yield f"there are no {part} records of {names}"
    largest = float(np.abs(data.train_x).max())
    if largest > LARGEST_FEATURE:
        yield (
            f"features reach {largest:g}; gradients are clipped, so scale them to [0, 1] or nearby"
        )


def _facts(source: Any, data: Dataset, seed: int) -> Iterator[str]:
    stated = np.asarray(source.class_counts(Streams(seed)))
    true = np.bincount(data.train_y, minlength=len(data.classes))
    if stated.tolist() != true.tolist():
        yield f"class_counts gives {stated.tolist()}, but the training records are {true.tolist()}"
    shape = (data.train_x.shape[1], len(data.classes))
    if isinstance(source, KnownShape) and tuple(source.shape()) != shape:
        yield f"shape gives {source.shape()}, but the data have {shape} features and classes"
    if isinstance(source, HasOwners) and data.owners is not None:
        counts = np.asarray(source.owner_counts(Streams(seed)))
        if counts.tolist() != data.owner_counts().tolist():
            yield "owner_counts does not give the training records of each owner and class"
