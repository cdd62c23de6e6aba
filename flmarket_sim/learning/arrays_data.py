"""The data set `arrays`: a data set that was given in Python, known by the hash of its arrays.

A scenario cannot hold arrays, so it holds their SHA-256. The arrays are found in the process to
which they were given, as long as they are in use there.
"""

from __future__ import annotations

from typing import Annotated, Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.errors import DataError, InputError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario

ARRAYS = "arrays"
_given: dict[str, list[ref[Dataset]]] = {}  # by hash; several data sets may have the same arrays


class ArraysData:
    """Arrays that were given to fm.run in Python; a scenario names them by their SHA-256."""

    name = ARRAYS

    def __init__(
        self,
        sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")],
        features: Annotated[int, Field(ge=1)],
        classes: Annotated[int, Field(ge=2)],
    ) -> None:
        self.sha256, self.features, self.classes = sha256, features, classes

    def shape(self) -> tuple[int, int]:
        return self.features, self.classes

    def class_counts(self, streams: Streams) -> NDArray[np.int64]:
        data = self.load(streams)
        return np.bincount(data.train_y, minlength=len(data.classes))

    def owner_counts(self, streams: Streams) -> NDArray[np.int64]:
        return self.load(streams).owner_counts()

    def load(self, streams: Streams) -> Dataset:
        data = _in_use(self.sha256)
        if data is None:
            raise DataError(
                "the data of this scenario are arrays that were given in Python, and no file has "
                f"them (SHA-256 {self.sha256}); pass the same data set: "
                "fm.run(scenario, data=...) or fm.resume(directory, data=...)"
            )
        return data


def arrays_table(data: Dataset) -> dict[str, Any]:
    """The data table of a scenario that runs on a data set given in Python."""
    data.check()
    digest = data.sha256()
    _remember(digest, data)
    features = int(data.train_x.shape[1])
    return {"name": ARRAYS, "sha256": digest, "features": features, "classes": len(data.classes)}


def arrays_of_run(scenario: Scenario, data: Dataset | None, where: object) -> Dataset | None:
    """The arrays with which a run in the directory `where` continues; None: the scenario loads.

    Raises InputError if the run needs arrays and they are not given, or are others.
    """
    if scenario.data.name != ARRAYS:
        if data is not None:
            raise InputError(
                f"{where} is a run on the data set {scenario.data.name!r}, which is loaded again; "
                "resume it without data"
            )
        return None
    expected = str(scenario.data.options.get("sha256"))
    if data is None:
        data = _in_use(expected)
    if data is None:
        raise InputError(
            f"{where} is a run on arrays that were given in Python; continue it there with the "
            f"same data set: fm.resume({str(where)!r}, data=...)"
        )
    if (digest := data.check().sha256()) != expected:
        raise InputError(
            f"these are not the arrays of {where}: their SHA-256 is {digest}, and the run has "
            f"{expected}"
        )
    _remember(expected, data)
    return data


def _remember(digest: str, data: Dataset) -> None:
    others = [one for one in _given.get(digest, []) if one() is not None and one() is not data]
    _given[digest] = [*others, ref(data)]


def _in_use(digest: str) -> Dataset | None:
    """A data set with these arrays that somebody still has."""
    return next((data for one in _given.get(digest, []) if (data := one()) is not None), None)
