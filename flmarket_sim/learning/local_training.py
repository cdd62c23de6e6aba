"""What owners send: the gradient of the buyer's model, or its change after steps of their own.

A local step is w <- w - rate x gradient on the owner's records (plain SGD). She starts at the model
that she was sent and sends w_0 - w_end, which the buyer subtracts as she would subtract a gradient.
With one step on all records it is the gradient times the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.errors import InputError
from flmarket_sim.learning.buyer_model import BuyerModel, TrainsLocally
from flmarket_sim.learning.dataset import Dataset, Features
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Learning

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ELEMENTS = 2**21  # most numbers of records or parameters in one vectorised step


class Work(NamedTuple):
    """The records of n owners in one step, as `TrainsLocally` takes them."""

    x: Features
    y: Ints
    weight: Floats


class LocalRecords(NamedTuple):
    """The owners of a round: the records of owner i are rows[starts[i] : starts[i] + sizes[i]]."""

    data: Dataset
    rows: Ints
    starts: Ints
    sizes: Ints
    numbers: Ints

    def work(self, places: Ints, weight: Floats) -> Work:
        """The records at these places (n, b) of `rows`, with their weights (n, b)."""
        records = self.rows[places]
        return Work(self.data.train_x[records], self.data.train_y[records], weight)


Shift = tuple[Ints, Callable[[int], Work]]  # some owners, and what they work on in each step


def owner_updates(
    model: BuyerModel,
    spec: Learning,
    parameters: Floats,
    data: Dataset,
    rows: Ints,
    sizes: Ints,
    streams: Streams,
    participants: Ints,
    round_number: int,
    buyer: int,
) -> Floats:
    """(n, D) what n owners compute at the model that they were sent, before it is made private.

    The first sizes[0] numbers of `rows` are the records of the first owner, and so on. An owner's
    batches depend on her number in `participants`, the round, the buyer, and how many records she
    sells. A model that overflows on her records gives numbers that are not finite; they never leave
    her (privacy/release.py).
    """
    if spec.update == "gradient":
        with np.errstate(over="ignore", invalid="ignore"):
            return model.gradients(parameters, data, rows, sizes)
    if not isinstance(model, TrainsLocally):
        raise InputError(cannot_train_locally(type(model).__name__))

    owners = LocalRecords(data, rows, np.cumsum(sizes) - sizes, sizes, participants)
    generator = partial(streams.generator, Purpose.BATCH)
    result = np.empty((len(sizes), len(parameters)))
    for group, work in chain(
        _on_all_records(owners, spec, len(parameters)),
        _on_batches(
            owners, spec, len(parameters), lambda owner: generator(owner, round_number, buyer)
        ),
    ):
        result[group] = _change(model, spec, parameters, len(group), work)
    return result


def draw_batches(generator: np.random.Generator, size: int, steps: int, batch: int) -> Ints:
    """(steps, batch) positions among `size` records, each step's drawn without replacement.

    A step takes the records with the smallest of `size` uniform numbers. A batch that is not
    smaller than the data is all of them.
    """
    if batch >= size:
        return np.broadcast_to(np.arange(size), (steps, size))
    lots = generator.random((steps, size))
    return np.asarray(np.argpartition(lots, batch - 1, axis=1)[:, :batch], np.int64)


def processed_records(spec: Learning, sizes: Floats) -> Floats:
    """How many records owners of `sizes` records go through, each time counted, for what they send.

    An owner's compute speed turns this into the time that she needs.
    """
    if spec.update == "gradient":
        return sizes
    return spec.steps * (sizes if spec.batch is None else np.minimum(sizes, spec.batch))


def cannot_train_locally(model: str) -> str:
    """The message about a model without the ability."""
    return (
        f"model {model!r} cannot train on an owner's records (it has no gradients_of_each, see "
        "TrainsLocally); use update = 'gradient', or another model"
    )


def _on_all_records(owners: LocalRecords, spec: Learning, dimension: int) -> Iterator[Shift]:
    """Those who take all their records in every step; shorter rows are filled up with weight 0."""
    sizes = owners.sizes
    whole = np.full(len(sizes), True) if spec.batch is None else sizes <= spec.batch
    for group in _groups(np.flatnonzero(whole), sizes, owners.data, dimension):
        column = np.arange(int(sizes[group].max()))
        inside = column < sizes[group][:, None]
        places = owners.starts[group][:, None] + np.where(inside, column, 0)
        work = owners.work(places, inside / sizes[group][:, None])
        yield group, partial(_the_same, work)


def _the_same(work: Work, step: int) -> Work:
    return work


def _on_batches(
    owners: LocalRecords,
    spec: Learning,
    dimension: int,
    generator: Callable[[int], np.random.Generator],
) -> Iterator[Shift]:
    """Those who draw some of their records for every step."""
    batch = spec.batch
    if batch is None:
        return
    drawing = np.flatnonzero(owners.sizes > batch)
    for group in _groups(drawing, np.full_like(owners.sizes, batch), owners.data, dimension):
        drawn = [
            draw_batches(generator(int(number)), int(size), spec.steps, batch)
            for number, size in zip(owners.numbers[group], owners.sizes[group], strict=True)
        ]
        places = owners.starts[group][:, None, None] + np.stack(drawn)
        weight = np.full((len(group), batch), 1.0 / batch)

        def work(step: int, places: Ints = places, weight: Floats = weight) -> Work:
            return owners.work(places[:, step], weight)

        yield group, work


def _change(
    model: TrainsLocally,
    spec: Learning,
    parameters: Floats,
    count: int,
    work: Callable[[int], Work],
) -> Floats:
    """(count, D) the sum of all steps: w_0 - w_end, without the rounding of a difference."""
    change = np.zeros((count, len(parameters)))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(spec.steps):
            gradients = model.gradients_of_each(parameters - change, *work(step))
            gradients *= spec.learning_rate
            change += gradients
    return change


def _groups(owners: Ints, lengths: Ints, data: Dataset, dimension: int) -> Iterator[Ints]:
    """Owners of similar length together, no more than fit into one step."""
    features = data.train_x.shape[1]
    width = max(features, dimension // features)  # about a record's numbers inside the model
    level = np.ceil(4 * np.log2(np.maximum(lengths[owners], 1))).astype(int)
    for value in np.unique(level):
        members = owners[level == value]
        numbers = max(int(lengths[members].max()) * width, dimension)
        most = max(1, ELEMENTS // numbers)
        for begin in range(0, len(members), most):
            yield members[begin : begin + most]
