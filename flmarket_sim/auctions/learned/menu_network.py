"""The network of the `fast` preset: a learned menu for every owner, who gets her favourite.

It has the two sides of the paper's networks. The payment side splits the buyer's money by a softmax
with an unspent share, as in the paper, and spreads each owner's share over her M levels by a rising
curve, which gives a menu of M payments. The allocation side takes the level that an owner likes
best by her report, or nothing. So no owner is paid below her report and no budget is overspent. A
misreport can pay only by changing the menu, and training reduces such changes.

Owners enter as a set (embeddings, their mean and maximum), so the same weights serve any number of
owners in any order. All inputs are ratios of money to money: prices relative to the part of the
budget that is proportional to the records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class MenuNetwork(nn.Module):
    """`forward` gives menus: payments (K, n, M) for m/M of the reported budget, rising in m."""

    kind = "menu"
    n = 0  # any number of owners

    def __init__(self, levels: int, hidden: int = 64) -> None:
        super().__init__()
        self.levels, self.hidden = levels, hidden
        self.embed = nn.Sequential(
            nn.Linear(levels + 3, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU()
        )
        self.offer = nn.Sequential(
            nn.Linear(3 * hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, levels + 1),
        )
        self.unspent = nn.Linear(2 * hidden, 1)
        for parameter in (*self.offer[-1].parameters(), *self.unspent.parameters()):
            nn.init.zeros_(parameter)
        nn.init.constant_(self.unspent.bias, -2.0)

    def forward(
        self, values: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor
    ) -> Tensor:
        n = values.shape[1]
        share = data_size / data_size.sum(1, keepdim=True)
        log_share = torch.log(n * share)
        fair = (budget[:, None] * share).clamp(min=1e-30)
        prices = torch.log(values / fair[..., None] + 1e-6).clamp(-6.0, 6.0) / 2.0
        wealth = torch.log(budget / values[..., -1].sum(1) + 1e-6).clamp(-6.0, 6.0)
        facts = torch.stack(
            [torch.log(privacy_budget), log_share / 2.0, wealth[:, None].expand(-1, n)], dim=-1
        )
        owners = torch.cat([prices, facts], dim=-1)
        differentiable = self.training or torch.is_grad_enabled()
        each = self.embed(owners) if differentiable else _in_place(self.embed, owners)
        everybody = torch.cat([each.mean(1), each.amax(1)], dim=-1)
        out = self._offer(each, everybody, differentiable)
        logits = torch.cat([out[..., 0] + log_share, self.unspent(everybody) + math.log(n)], dim=1)
        fraction = torch.softmax(logits, dim=1)[:, :-1]
        if differentiable:
            return (
                fraction[..., None]
                * torch.softmax(out[..., 1:], dim=-1).cumsum(-1)
                * budget[:, None, None]
            )
        steps = out[..., 1:].clamp(-60.0, 60.0).exp_().cumsum(-1)  # the same curve in fewer passes
        return steps.mul_((fraction * budget[:, None])[..., None] / steps[..., -1:])

    def _offer(self, each: Tensor, everybody: Tensor, differentiable: bool) -> Tensor:
        """The offer network on (own embedding, everybody's). When deployed, it computes everybody's
        part of the first layer once for each market."""
        if differentiable:
            both = torch.cat([each, everybody[:, None].expand(-1, each.shape[1], -1)], dim=-1)
            return torch.as_tensor(self.offer(both))
        weight, bias = self.offer[0].parameters()
        shared = nn.functional.linear(everybody, weight[:, self.hidden :], bias)
        return _in_place(
            list(self.offer)[1:],
            nn.functional.linear(each, weight[:, : self.hidden]).add_(shared[:, None]),
        )


def _in_place(layers: Iterable[nn.Module], x: Tensor) -> Tensor:
    """Applies layers in place, which saves memory where no gradient is needed."""
    for layer in layers:
        x = nn.functional.silu(x, inplace=True) if isinstance(layer, nn.SiLU) else layer(x)
    return x
