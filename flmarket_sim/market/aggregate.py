"""The broker's aggregation: a weighted sum of the gradients in time, and its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim import aggregation
from flmarket_sim.aggregation.rule import check_weights
from flmarket_sim.aggregation.weighted_sum import weighted_sum
from flmarket_sim.errors import plugin_errors
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.messages import GradientMessage, Offers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Aggregate:
    """An aggregated gradient of g owners. Without owners it is invalid: its bound is infinite.

    weight, share, privacy_loss  (g,) aggregation weights, shares of the bidders' records, losses
    owed                         what the buyer has to pay
    bound_of_data                the error bound with the bidders' true numbers of records
    gradient                     (D,), None in a market without learning
    true_error, true_squared_bias  as in the log
    """

    weight: Floats
    share: Floats
    privacy_loss: Floats
    owed: float = 0.0
    error_bound: float = float("inf")
    variance: float = float("inf")
    squared_bias: float = float("nan")
    bound_of_data: float = float("inf")
    gradient: Floats | None = None
    true_error: float | None = None
    true_squared_bias: float | None = None


def aggregate(
    cohort: Cohort,
    rule: aggregation.AggregationRule,
    offers: Offers,
    gradients: list[GradientMessage],
    parameters: Floats | None,
) -> Aggregate:
    """Aggregates the gradients by a rule. Owners without a gradient count as sellers of nothing."""
    if not gradients:
        return Aggregate(np.zeros(0), np.zeros(0), np.zeros(0))
    clip = cohort.world.scenario.privacy.clip
    rows = np.array([message.row for message in gradients])
    loss = np.zeros(len(offers.slots))
    loss[rows] = offers.privacy_loss[rows]
    size = cohort.reports.data_size[offers.slots]
    with plugin_errors("aggregation rule", rule.name):
        weights = rule.weights(loss[None], size[None], clip)
        weights = check_weights(rule.name, weights, loss[None])
    bound = aggregation.error_bound_parts(weights, loss[None], size[None], clip)
    bound_of_data = bound.total
    if cohort.misreports is not None:
        true_size = cohort.misreports.true_size[offers.slots]
        bound_of_data = aggregation.error_bound(weights, loss[None], true_size[None], clip)
    gradient = true_error = true_squared_bias = None
    if gradients[0].gradient is not None:
        sent = [message.gradient for message in gradients if message.gradient is not None]
        gradient = weighted_sum(weights[0, rows], sent)
        clipped = cohort.gradients(parameters)
        true_error, true_squared_bias = clipped.true_error(gradient, weights[0])
    return Aggregate(
        weight=weights[0, rows],
        share=size[rows] / size.sum(),
        privacy_loss=loss[rows],
        owed=float(offers.payment[rows].sum()),
        error_bound=float(bound.total[0]),
        variance=float(bound.variance[0]),
        squared_bias=float(bound.squared_bias[0]),
        bound_of_data=float(bound_of_data[0]),
        gradient=gradient,
        true_error=true_error,
        true_squared_bias=true_squared_bias,
    )
