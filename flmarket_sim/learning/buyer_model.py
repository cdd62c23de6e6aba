"""The contract of a buyer's model: parameters, gradients of many owners at once, evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from flmarket_sim.errors import InputError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.scenario.model import Model, Scenario

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Evaluation:
    """On the test records: mean loss, accuracy, and the recall of each class."""

    loss: float
    accuracy: float
    recall: Floats

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that have test records."""
        return float(np.nanmean(self.recall))


class BuyerModel(Protocol):
    """`dimension` is the number D of parameters; methods are pure functions of parameters (D,)."""

    dimension: int

    def initial(self) -> Floats: ...

    def gradients(self, parameters: Floats, data: Dataset, rows: Ints, sizes: Ints) -> Floats:
        """(n, D) mean gradients of n owners.

        The first sizes[0] numbers of `rows` are the records of owner 0, and so on.
        """
        ...

    def evaluate(self, parameters: Floats, data: Dataset) -> Evaluation: ...


@runtime_checkable
class DrawnStart(Protocol):
    """An optional ability of a registered model: parameters to start with may be random."""

    def draw_start(self, generator: np.random.Generator) -> None:
        """Draws what `initial` gives, before the first round."""
        ...


@runtime_checkable
class TrainsLocally(Protocol):
    """An optional ability of a model: gradients of owners who each have a model of their own."""

    def gradients_of_each(self, models: Floats, x: Any, y: Ints, weight: Floats) -> Floats:
        """(n, D) gradients of n owners, each at her own parameters of `models` (n, D).

        Owner i has b records: features x[i] (b, features), classes y[i] (b,), and weights
        weight[i] (b,) of their losses. Weights sum to 1; a record of weight 0 is not hers.
        """
        ...


class NoModel:
    """A market without learning: auctions, payments and error bounds only.

    `dimension` is the number of coordinates that a gradient would have; error bounds of whole
    gradients depend on it.
    """

    name = "none"

    def __init__(
        self, features: int, classes: int, dimension: Annotated[int, Field(ge=1)] = 1
    ) -> None:
        """Takes the arguments of every model; features and classes do not matter."""
        if dimension < 1:
            raise InputError(f"model 'none': dimension must be at least 1, got {dimension}")
        self.dimension = dimension


def gradient_dimension(spec: Model, model: BuyerModel | None) -> int:
    """D: the coordinates of a gradient of this model; without learning what the scenario says."""
    return NoModel(1, 1, **spec.options).dimension if model is None else model.dimension


def create_model(spec: Model, data: Dataset, streams: Streams, buyer: int) -> BuyerModel:
    """The model of a scenario: a registered one, or a torch.nn.Module given as module:Class.

    Both are built as Class(features, classes, **options). A random start depends on the scenario's
    seed and the number of the buyer.
    """
    return build_model(spec, data.train_x.shape[1], len(data.classes), streams, buyer)


def build_model(
    spec: Model, features: int, classes: int, streams: Streams, buyer: int
) -> BuyerModel:
    """The model of a scenario for data of this shape; see `create_model`."""
    cls = registry.models.get(spec.name)
    if ":" not in spec.name:
        built: BuyerModel = cls(features, classes, **spec.options)
        if isinstance(built, DrawnStart):
            built.draw_start(streams.generator(Purpose.MODEL, buyer))
        return built
    from flmarket_sim.learning.torch_model import TorchModel

    seed = int(streams.generator(Purpose.MODEL, buyer).integers(2**63))
    return TorchModel(cls, features, classes, spec.options, seed)


def buyer_model(scenario: Scenario, data: Dataset, buyer: str | None = None) -> BuyerModel:
    """The model of a buyer, by default the first one, as a run of the scenario has it."""
    buyers = scenario.resolved_buyers()
    names = [spec.name for spec in buyers]
    if buyer is not None and buyer not in names:
        raise InputError(f"there is no buyer {buyer!r}; there are {', '.join(names)}")
    index = 0 if buyer is None else names.index(buyer)
    if buyers[index].model.name == NoModel.name:
        raise InputError(f"buyer {names[index]!r} has no model: her market is without learning")
    return create_model(buyers[index].model, data, Streams(scenario.seed), index)


def evaluation(loss: float, predicted: Ints, labels: Ints, classes: int) -> Evaluation:
    """Accuracy and recalls from predictions; a class without test records has recall nan."""
    right = predicted == labels
    hits = np.bincount(labels, weights=right, minlength=classes)
    total = np.bincount(labels, minlength=classes)
    recall = np.divide(hits, total, out=np.full(classes, np.nan), where=total > 0)
    return Evaluation(loss, float(right.mean()), recall)


def require_finite(what: str, values: Any) -> None:
    """Refuses parameters or gradients that have become infinite or nan."""
    if not np.isfinite(values).all():
        raise InputError(f"{what} is not finite: the learning rate may be too large")
