"""The networks of the paper (section V) as its authors built them: two MLPs over one long vector.

The input has n (M + 2) + 1 numbers: for each owner in turn M unit valuations (money per record at
m/M of her budget), her privacy budget and her data size; then the buyer's money per record. There
are three groups: the valuations followed by the money, the privacy budgets, and the data sizes.
Each group is centred and scaled in each market by its own statistics, which leave out its last
element.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def normalised(group: Tensor) -> Tensor:
    """(K, k) a group, less the mean and over the range of all but its last column, or 0.

    Of columns alike, only one has the slope of the largest or smallest, as in the authors' code.
    """
    counted = group[:, :-1]
    width = counted.max(1, keepdim=True).values - counted.min(1, keepdim=True).values
    return torch.nan_to_num(
        (group - counted.mean(1, keepdim=True)) / width, nan=0.0, posinf=0.0, neginf=0.0
    )


def features(values: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor) -> Tensor:
    """(K, n (M + 2) + 1) from values (K, n, M) in money, budgets and sizes (K, n), money (K,)."""
    markets, n, levels = values.shape
    unit = (values / data_size[..., None]).reshape(markets, n * levels)
    money = (budget / data_size.sum(1))[:, None]
    prices = normalised(torch.cat([unit, money], 1))
    owners = torch.cat(
        [
            prices[:, :-1].reshape(markets, n, levels),
            normalised(privacy_budget)[..., None],
            normalised(data_size)[..., None],
        ],
        dim=2,
    )
    return torch.cat([owners.reshape(markets, -1), prices[:, -1:]], 1)


class PaperNetwork(nn.Module):
    """Allocation and payment network: tanh MLPs with three hidden layers.

    The paper says two layers; the published weights have three. `forward` gives allocation logits
    (K, n, M + 1), "nothing" last, and payment logits (K, n + 1), "unspent" last.
    """

    kind = "paper"

    def __init__(self, n: int, levels: int, hidden: int = 100) -> None:
        super().__init__()
        self.n, self.levels, self.hidden = n, levels, hidden
        inputs = n * (levels + 2) + 1
        self.allocation_head = _mlp(inputs, hidden, n * (levels + 1))
        self.payment_head = _mlp(inputs, hidden, n + 1)

    def forward(
        self, values: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor
    ) -> tuple[Tensor, Tensor]:
        x = features(values, privacy_budget, data_size, budget)
        return self.allocation_head(x).view(-1, self.n, self.levels + 1), self.payment_head(x)


def _mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (inputs, hidden, hidden):
        layers += [nn.Linear(width, hidden), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
