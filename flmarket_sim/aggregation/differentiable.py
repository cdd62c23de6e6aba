"""The optimal error bound for training (docs/theory.md, section 1).

The weights are exact, and the gradient follows from the envelope theorem.
"""

from __future__ import annotations

import torch

from flmarket_sim.aggregation.opt_aggr import OptAggr
from flmarket_sim.aggregation.rule import AggregationRule
from flmarket_sim.plugins.registry import aggregation


def optimal_error_bound(
    privacy_loss: torch.Tensor, data_size: torch.Tensor, clip: float = 1.0
) -> torch.Tensor:
    """(K,) min over weights of the bound, differentiable in `privacy_loss` (K, n).

    At the optimum the derivative through the weights vanishes, so they are computed without a graph
    and held constant.
    """
    return error_bound_with(OptAggr(), privacy_loss, data_size, clip)


def error_bound_under(
    rule: str, privacy_loss: torch.Tensor, data_size: torch.Tensor, clip: float = 1.0
) -> torch.Tensor:
    """(K,) the bound under a named rule, its weights held constant in the gradient."""
    return error_bound_with(aggregation.create(rule), privacy_loss, data_size, clip)


def error_bound_with(
    rule: AggregationRule, privacy_loss: torch.Tensor, data_size: torch.Tensor, clip: float
) -> torch.Tensor:
    with torch.no_grad():
        loss = privacy_loss.detach().double().cpu().numpy()
        size = data_size.detach().double().cpu().numpy()
        fixed = rule.weights(loss, size, clip)
        weights = torch.from_numpy(fixed).to(privacy_loss)
        share = data_size / data_size.sum(dim=1, keepdim=True)
        squared_bias = (clip * (weights - share).abs().sum(dim=1)) ** 2
    sells = privacy_loss > 0
    safe = torch.where(sells, privacy_loss, torch.ones_like(privacy_loss))
    noise = torch.where(sells, 8.0 * clip**2 * (weights / safe) ** 2, torch.zeros_like(safe))
    variance = noise.sum(dim=1)
    return torch.where(
        sells.any(dim=1), variance + squared_bias, torch.full_like(variance, torch.inf)
    )
