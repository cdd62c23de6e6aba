"""The network of MFG-RegretNet as its authors published it: two MLPs over one long vector.

The input has 6 n + 1 numbers as they are: for each owner in turn her valuation (money for a unit of
privacy loss), privacy budget and data size; then the means of these three over the owners, which
stand for the mean field, n times; then the buyer's money.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LARGEST = 1e30  # of an input: larger ones are read as this, so that no sum overflows
HIDDEN_LAYERS = 4


class MfgNetwork(nn.Module):
    """Allocation and payment network: tanh MLPs with four hidden layers.

    `forward` gives allocation logits (K, n, 2), "sells" first, and payment logits (K, n).
    """

    kind = "mfg"
    levels = 1

    def __init__(self, n: int, hidden: int) -> None:
        super().__init__()
        self.n, self.hidden = n, hidden
        self.allocation_head = _mlp(6 * n + 1, hidden, 2 * n)
        self.payment_head = _mlp(6 * n + 1, hidden, n)

    def forward(
        self, full_value: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor
    ) -> tuple[Tensor, Tensor]:
        """From asks for whole budgets, budgets and sizes (K, n) and money (K,)."""
        owners = torch.stack([full_value / privacy_budget, privacy_budget, data_size], dim=-1)
        owners = owners.clamp(max=LARGEST)
        field = owners.mean(1).repeat(1, self.n)
        x = torch.cat([owners.flatten(1), field, budget[:, None].clamp(max=LARGEST)], 1)
        x = x.to(self.allocation_head[0].weight.dtype)  # type: ignore[arg-type]
        return self.allocation_head(x).view(-1, self.n, 2), self.payment_head(x)


def outcome_of(
    network: MfgNetwork,
    full_value: Tensor,
    privacy_budget: Tensor,
    data_size: Tensor,
    budget: Tensor,
) -> tuple[Tensor, Tensor]:
    """Chances (K, n, 2) of selling nothing and everything, and payments (K, n).

    A payment is the share of the money that a sigmoid gives; if the shares of a market exceed 1,
    they are scaled down to it.
    """
    allocation, payment = network(full_value, privacy_budget, data_size, budget)
    chance = torch.softmax(allocation.double(), dim=-1).flip(-1)
    share = torch.sigmoid(payment.double())
    share = share / share.sum(1, keepdim=True).clamp(min=1.0)
    return chance, share * budget[:, None].double()


def _mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inputs, *[hidden] * (HIDDEN_LAYERS - 1)):
        layers += [nn.Linear(width, hidden), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
