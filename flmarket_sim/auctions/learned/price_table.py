"""What `record-price` offers: a table by the money for a record and by kappa.

A point of the table has the part of everybody's records that is for sale, and a curve: the share of
the money that is paid at each knot of privacy loss. A curve rises and ends at 1 or below. Between
points, parts and curves are mixed in proportion, so that what is read is of the same form.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

MONEY = tuple(0.4 * step for step in range(-8, 6))  # logarithms of money over the typical value
KAPPA = tuple(math.log(8.0) + math.log(4.0) * step for step in range(6))  # 8 to 8,192
LEAST_PART = 0.1  # of the records: owners of fewer than ten could have none for sale below it
SLACK = 4.0  # the money that a curve of an untrained table leaves, in logarithms below a piece


class PriceTable(nn.Module):
    """Money for a record (K,) and kappa -> the part for sale, and the curve over the knots.

    largest_loss   the last knot; the others divide what is below it into equal parts
    typical_price  what a record is worth to its owner at her whole privacy budget, on average
    sells          "all" records of an owner, or a learned "part" of them, a tenth at least
    """

    kind = "price-table"
    n = 0  # any number of owners
    hidden = 1  # it has no hidden layer; files of weights state a width of at least 1

    def __init__(
        self, levels: int, largest_loss: float = 2.0, typical_price: float = 1.0, sells: str = "all"
    ) -> None:
        super().__init__()
        self.levels, self.largest_loss, self.typical_price = levels, largest_loss, typical_price
        self.sells = sells
        start = torch.zeros(len(MONEY), len(KAPPA), levels + 1)
        start[..., -1] = -SLACK
        self.pieces = nn.Parameter(start)
        self.part = nn.Parameter(torch.zeros(len(MONEY), len(KAPPA), 1))

    @property
    def shape_facts(self) -> dict[str, object]:
        """What `weight_files` needs to build the table again."""
        return {
            "largest_loss": self.largest_loss,
            "typical_price": self.typical_price,
            "sells": self.sells,
        }

    def knots(self, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.arange(1, self.levels + 1, dtype=dtype) * (self.largest_loss / self.levels)

    def forward(self, per_record: Tensor, kappa: float) -> tuple[Tensor, Tensor]:
        """(K,) the part of the records that is for sale, and (K, levels) the rising curves, in
        shares of the money for all records."""
        money = torch.log((per_record / self.typical_price).clamp(min=1e-30))
        part = LEAST_PART + (1.0 - LEAST_PART) * torch.sigmoid(self.part)
        mixed = _read(torch.cat([part, torch.softmax(self.pieces, dim=-1)], dim=-1), money, kappa)
        sold = mixed[:, 0] if self.sells == "part" else torch.ones_like(mixed[:, 0])
        return sold, mixed[:, 1:-1].cumsum(1)


def _read(table: Tensor, money: Tensor, kappa: float) -> Tensor:
    """(K, columns) the table (MONEY, KAPPA, columns) between its points."""
    below, above, way = _between(torch.tensor([math.log(kappa)], dtype=table.dtype), KAPPA)
    column = torch.lerp(table[:, below[0]], table[:, above[0]], way[0])
    below, above, way = _between(money, MONEY)
    return torch.lerp(column[below], column[above], way[:, None].to(table.dtype))


def _between(places: Tensor, points: tuple[float, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """(K,) the points below and above, and how far between them; places outside go to the end."""
    width = points[1] - points[0]
    at = ((places - points[0]) / width).clamp(0.0, len(points) - 1.0)
    below = at.floor().long().clamp(max=len(points) - 2)
    return below, below + 1, at - below
