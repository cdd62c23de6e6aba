"""The optimal error bound for training (docs/theory.md, section 1).

The weights are exact, and the gradient follows from the envelope theorem. The market's error can be
given as a `MarketError`, or as a `NoiseCurve` that is made once and used at every step; None is the
paper's reading.
"""

from __future__ import annotations

import torch

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.aggregation.noise_curve import NoiseCurve
from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.aggregation.rule import AggregationRule, takes_variance
from flmarket_sim.plugins.registry import aggregation

Error = MarketError | NoiseCurve | None


def optimal_error_bound(
    privacy_loss: torch.Tensor, data_size: torch.Tensor, clip: float = 1.0, error: Error = None
) -> torch.Tensor:
    """(K,) min over weights of the bound, differentiable in `privacy_loss` (K, n).

    At the optimum the derivative through the weights vanishes, so they are computed without a graph
    and held constant.
    """
    return error_bound_with(OptAggr(), privacy_loss, data_size, clip, error)


def error_bound_under(
    rule: str,
    privacy_loss: torch.Tensor,
    data_size: torch.Tensor,
    clip: float = 1.0,
    error: Error = None,
) -> torch.Tensor:
    """(K,) the bound under a named rule, its weights held constant in the gradient."""
    return error_bound_with(aggregation.create(rule), privacy_loss, data_size, clip, error)


def error_bound_with(
    rule: AggregationRule,
    privacy_loss: torch.Tensor,
    data_size: torch.Tensor,
    clip: float,
    error: Error = None,
) -> torch.Tensor:
    """(K,) the bound under a rule. `clip` counts only without an error, which has its own radius.

    A variance from a table has the slope -k V / e, with its elasticity k.
    """
    sells = privacy_loss > 0
    safe = torch.where(sells, privacy_loss, torch.ones_like(privacy_loss))
    with torch.no_grad():
        loss = privacy_loss.detach().double().cpu().numpy()
        size = data_size.detach().double().cpu().numpy()
        noise = _curve(error, float(loss.max(initial=0.0)))
        radius = clip if noise is None else noise.radius
        variance = None if noise is None else noise.variance(loss)
        if variance is not None and takes_variance(rule):
            fixed = rule.weights(loss, size, radius, variance=variance)
        else:
            fixed = rule.weights(loss, size, radius)
        weights = torch.from_numpy(fixed).to(privacy_loss)
        share = data_size / data_size.sum(dim=1, keepdim=True)
        squared_bias = (radius * (weights - share).abs().sum(dim=1)) ** 2
    if noise is None or not noise.tabulated:
        each = COORDINATE_KAPPA * radius**2 * (weights / safe) ** 2
    else:
        at = safe.detach().double().cpu().numpy()
        value, elasticity = noise.variance_at(at), noise.elasticity(at)
        held, slope = (
            torch.from_numpy(column).to(privacy_loss)
            for column in (value, -elasticity * value / at)
        )
        each = weights**2 * (held + slope * (safe - safe.detach()))
    total = torch.where(sells, each, torch.zeros_like(safe)).sum(dim=1)
    return torch.where(sells.any(dim=1), total + squared_bias, torch.full_like(total, torch.inf))


def _curve(error: Error, largest: float) -> NoiseCurve | None:
    """The curve of an error, for losses up to the largest; None for the paper's reading."""
    if isinstance(error, MarketError):
        return NoiseCurve.of(error, largest if largest > 0 else 1.0)
    return error
