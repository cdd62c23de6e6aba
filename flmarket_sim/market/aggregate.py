"""The broker's aggregation: a weighted sum of the gradients in time, and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.rule import check_weights, weights_in
from flmarket_sim.aggregation.weighted_sum import weighted_sum
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import ErrorKind
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.messages import Bounds, GradientMessage, Offers
from flmarket_sim.market.world import World
from flmarket_sim.perturbation.perturbation import vector_error
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregated gradient of g owners. Without owners it is invalid: its bound is infinite.

    weight, share, privacy_loss  (g,) aggregation weights, shares of the bidders' records, losses
    bounds                       how far the gradient can be off
    owed                         what the buyer has to pay
    bound_of_data                the error bound with the bidders' true numbers of records
    gradient                     (D,), None in a market without learning
    true_error, true_squared_bias  as in the log
    """

    weight: Floats
    share: Floats
    privacy_loss: Floats
    bounds: Bounds
    owed: float = 0.0
    bound_of_data: float = float("inf")
    gradient: Floats | None = None
    true_error: float | None = None
    true_squared_bias: float | None = None


@dataclass(frozen=True)
class ErrorReadings:
    """The two errors of a market, and which of them the scenario asks for."""

    vector: MarketError
    coordinate: MarketError
    kind: ErrorKind

    @property
    def chosen(self) -> MarketError:
        return self.vector if self.kind is ErrorKind.VECTOR else self.coordinate

    def bounds(self, weights: Floats, loss: Floats, size: Floats) -> Bounds:
        """Of the weights (1, n) on owners with these losses and reported sizes (1, n)."""
        of_vector = error_bound_in(self.vector, weights, loss, size)
        of_coordinate = error_bound_in(self.coordinate, weights, loss, size)
        bound = of_vector if self.kind is ErrorKind.VECTOR else of_coordinate
        return Bounds(
            error_kind=self.kind,
            error_bound=float(bound.total[0]),
            variance=float(bound.variance[0]),
            squared_bias=float(bound.squared_bias[0]),
            vector_bound=float(of_vector.total[0]),
            coordinate_bound=float(of_coordinate.total[0]),
        )


def error_readings(world: World, index: int, buyer: ResolvedBuyer, dimension: int) -> ErrorReadings:
    """The errors of a buyer's market, whose gradients have `dimension` coordinates."""
    clip, perturbation = world.scenario.privacy.clip, world.randomisers[index].perturbation
    return ErrorReadings(
        vector=vector_error(perturbation, dimension, clip),
        coordinate=coordinate_error(clip),
        kind=ErrorKind[buyer.aggregation.error.upper()],
    )


def aggregate(
    cohort: Cohort,
    rule: aggregation.AggregationRule,
    errors: ErrorReadings,
    offers: Offers,
    gradients: list[GradientMessage],
    parameters: Floats | None,
) -> Aggregate:
    """Aggregates the gradients by a rule. Owners without a gradient count as sellers of nothing."""
    if not gradients:
        return Aggregate(np.zeros(0), np.zeros(0), np.zeros(0), Bounds(errors.kind))
    rows = np.array([message.row for message in gradients])
    loss = np.zeros(len(offers.slots))
    loss[rows] = offers.privacy_loss[rows]
    size = cohort.reports.data_size[offers.slots]
    with plugin_errors("aggregation rule", rule.name):
        weights = weights_in(rule, loss[None], size[None], errors.chosen)
        weights = check_weights(rule.name, weights, loss[None])
    bounds = errors.bounds(weights, loss[None], size[None])
    bound_of_data = bounds.error_bound
    if cohort.misreports is not None:
        true_size = cohort.misreports.true_size[offers.slots]
        by_data = error_bound_in(errors.chosen, weights, loss[None], true_size[None])
        bound_of_data = float(by_data.total[0])
    gradient = true_error = true_squared_bias = None
    if gradients[0].gradient is not None:
        sent = [message.gradient for message in gradients if message.gradient is not None]
        gradient = weighted_sum(weights[0, rows], sent)
        sold = cohort.gradients(parameters)
        true_error, true_squared_bias = sold.true_error(gradient, weights[0])
    return Aggregate(
        weight=weights[0, rows],
        share=size[rows] / size.sum(),
        privacy_loss=loss[rows],
        bounds=bounds,
        owed=float(offers.payment[rows].sum()),
        bound_of_data=bound_of_data,
        gradient=gradient,
        true_error=true_error,
        true_squared_bias=true_squared_bias,
    )
