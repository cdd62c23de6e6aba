"""The broker's aggregation: one gradient from those in time, and its error."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.error_bound import error_bound_in
from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.aggregation.robust.robust_rule import RobustRule
from flmarket_sim.aggregation.rule import check_weights, weights_in
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import CombinationRecord, DeliveryRecord, ErrorKind, WeightRecord
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.combination import combination
from flmarket_sim.market.messages import Bounds, GradientMessage, Offers
from flmarket_sim.perturbation.perturbation import Perturbation, vector_error
from flmarket_sim.scenario.model import ResolvedBuyer

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregated gradient of g owners. Without owners it is invalid: its bound is infinite.

    weight, share, privacy_loss  (g,) aggregation weights, shares of the bidders' records, losses
    bounds                       how far the gradient can be off
    bound_of_data                the error bound with the bidders' true numbers of records
    gradient                     (D,), None in a market without learning
    combination                  what the log says about a robust rule, if there is one
    true_error, true_squared_bias  as in the log
    """

    weight: Floats
    share: Floats
    privacy_loss: Floats
    bounds: Bounds
    bound_of_data: float = float("inf")
    gradient: Floats | None = None
    combination: CombinationRecord | None = None
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


def error_readings(
    perturbation: Perturbation, clip: float, buyer: ResolvedBuyer, dimension: int
) -> ErrorReadings:
    """The errors of a buyer's market, whose gradients have `dimension` coordinates."""
    return ErrorReadings(
        vector=vector_error(perturbation, dimension, clip),
        coordinate=coordinate_error(clip),
        kind=ErrorKind[buyer.aggregation.error.upper()],
    )


def aggregate(
    cohort: Cohort,
    rule: aggregation.AggregationRule,
    robust: RobustRule,
    errors: ErrorReadings,
    offers: Offers,
    gradients: list[GradientMessage],
    parameters: Floats | None,
) -> Aggregate:
    """Aggregates gradients by both rules, and compares that with what only the simulator knows."""
    rows = np.array([message.row for message in gradients], np.int64)
    sent = [message.gradient for message in gradients if message.gradient is not None]
    size = cohort.reports.data_size[offers.slots]
    result, weights = aggregate_sent(rule, robust, errors, offers, rows, sent, size)
    if not gradients:
        return result
    if cohort.misreports is not None:
        loss = np.zeros(len(offers.slots))
        loss[rows] = result.privacy_loss
        true_size = cohort.misreports.true_size[offers.slots]
        by_data = error_bound_in(errors.chosen, weights[None], loss[None], true_size[None])
        result = replace(result, bound_of_data=float(by_data.total[0]))
    if result.gradient is not None:
        sold = cohort.gradients(parameters)
        true_error, true_squared_bias = sold.true_error(result.gradient, weights)
        result = replace(result, true_error=true_error, true_squared_bias=true_squared_bias)
    return result


def aggregate_sent(
    rule: aggregation.AggregationRule,
    robust: RobustRule,
    errors: ErrorReadings,
    offers: Offers,
    rows: Ints,
    sent: list[Floats],
    size: Floats,
) -> tuple[Aggregate, Floats]:
    """What a broker can compute: one gradient from those `sent` (g,) for the `rows` (g,) of the
    offers, by both rules, and the weights (k,) of all rows.

    `size` (k,) are the reported numbers of records. Owners without a gradient count as sellers of
    nothing. `sent` is empty in a market without learning.
    """
    if not len(rows):
        nothing = np.zeros(0)
        return Aggregate(nothing, nothing, nothing, Bounds(errors.kind)), np.zeros(len(size))
    loss = np.zeros(len(offers.slots))
    loss[rows] = offers.privacy_loss[rows]
    with plugin_errors("aggregation rule", rule.name):
        weights = weights_in(rule, loss[None], size[None], errors.chosen)
        weights = check_weights(rule.name, weights, loss[None])
    bounds = errors.bounds(weights, loss[None], size[None])
    variance = errors.vector.variance(loss[rows])
    made = combination(robust, sent, weights[0, rows], variance, bounds.vector_bound)
    result = Aggregate(
        weight=weights[0, rows],
        share=size[rows] / size.sum(),
        privacy_loss=loss[rows],
        bounds=bounds,
        bound_of_data=bounds.error_bound,
        gradient=made.gradient,
        combination=made.record,
    )
    return result, weights[0]


def delivery_records(result: Aggregate, owed: float) -> tuple[WeightRecord, DeliveryRecord]:
    """What the log has of an aggregation: the weights of the g owners, and the delivery, for which
    the buyer owes money."""
    weights = WeightRecord(
        weight=result.weight, share=result.share, privacy_loss=result.privacy_loss
    )
    delivery = DeliveryRecord(
        valid=len(result.weight) > 0,
        gradients=len(result.weight),
        owed=owed,
        true_error=result.true_error,
        true_squared_bias=result.true_squared_bias,
        bound_of_data=result.bound_of_data,
        **result.bounds._asdict(),
    )
    return weights, delivery
