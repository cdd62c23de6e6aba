"""The number of coordinates of a buyer's gradients, known before her market runs."""

from __future__ import annotations

from flmarket_sim.learning.buyer_model import build_model
from flmarket_sim.learning.dataset import KnownShape, data_source, read_data
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import ResolvedBuyer, Scenario


def model_dimension(scenario: Scenario, buyer: ResolvedBuyer | None = None) -> int:
    """D of a buyer's model, by default the first buyer's.

    The model is built, but data are loaded only if their shape is not known without.
    """
    spec = (buyer or scenario.resolved_buyers()[0]).model
    if spec.name == "none":
        return int(build_model(spec, 1, 1, Streams(scenario.seed), 0).dimension)
    features, classes = data_shape(scenario)
    return int(build_model(spec, features, classes, Streams(scenario.seed), 0).dimension)


def data_shape(scenario: Scenario) -> tuple[int, int]:
    """The number of features and of classes of a scenario's data."""
    source = data_source(scenario)
    if isinstance(source, KnownShape):
        return source.shape()
    data = read_data(scenario)
    return data.train_x.shape[1], len(data.classes)
