"""The offers of a `MenuNetwork` before it comes to one owner, over boxes of her reports.

This file follows `_Sale` in auctions/learned/menu_network.py with enclosed quantities in place of
tensors. Her report reaches the offers before hers through one term, the embedding of her report.
The reports of those before her are known. So in a box of her reports each of them chooses from an
enclosed menu, and some of her levels may turn out best. A *path* says what those before chose.
Every path that may happen is followed: on a path, what was sold is known exactly, and only the
money that is left is enclosed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from flmarket_sim.auctions.learned.menu_network import KAPPAS, KNOTS, MOST, SMALL, MenuNetwork
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.strategy.certified import smooth_functions as f
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, joined, stacked

ROUNDING = 3e-5  # of a payment: single precision, some times what was measured
DUST = 3e-7  # of the buyer's money: the same for payments of next to nothing
TIE = 1e-12  # of the buyer's money
MOST_PATHS = 48  # of one box; with more of them, she may get all the money that is left


class OwnMenu(NamedTuple):
    """What she is offered in B boxes, on R paths altogether; money is in shares of the budget.

    box      (R,) to which box a path belongs
    payment  (R, KNOTS) at the knots of her price curve
    unknown  (B,) the money left where a box has too many paths, else 0
    moves    (B, D) how far the coordinates of a box move payments
    """

    box: Tensor
    payment: Enclosed
    unknown: Tensor
    moves: Tensor


class EnclosedOffers:
    """The offers of one market in one direction, up to the owner in column `liar` of `bids`."""

    def __init__(
        self,
        network: MenuNetwork,
        bids: BidBatch,
        money: float,
        liar: int,
        *,
        kappa: float,
        by_size: float,
        upwards: bool,
    ) -> None:
        size = torch.from_numpy(bids.data_size[0])
        order = size.argsort(descending=True, stable=True)
        order = order.flip(0) if upwards else order
        self.network, self.n = network, len(order)
        self.reading = float(network.looks_ahead)  # 0: no menu reads the reports of those after
        self.place = order.tolist().index(liar)
        values = torch.from_numpy(bids.at_levels(network.levels)[0]).clamp(max=money)
        self.values = values[order] / money
        self.privacy_budget = torch.from_numpy(bids.privacy_budget[0])[order]
        self.share = size[order] / size.sum()
        self.per_record = min(max(math.log(money / float(size.sum())), -15.0), 15.0)
        self.rest = self.share.flip(0).cumsum(0).flip(0)
        self.rest_square = (self.share**2).flip(0).cumsum(0).flip(0).sqrt()
        self.regime = math.log(min(max(kappa, KAPPAS[0]), KAPPAS[1]) / 8.0) / 5.0
        self.by_size = by_size
        prices = torch.log(self.values / self.share[:, None] + 1e-6).clamp(-6.0, 6.0) / 2.0
        read = torch.cat([prices, self.report_facts()], 1).to(network.precision)
        with torch.no_grad():
            each = network.embed(read).double() * self.share[:, None]
        each *= self.reading
        each[self.place] = 0.0  # hers is enclosed
        self.after = each.flip(0).cumsum(0).flip(0) - each

    def report_facts(self) -> Tensor:
        """(n, 4) what the embedding reads of owners beside prices; privacy budgets come first."""
        facts = torch.zeros(self.n, 4, dtype=torch.float64)
        facts[:, 0] = torch.log(self.privacy_budget)
        facts[:, 1] = torch.log(self.n * self.share) / 2.0
        facts[:, 2], facts[:, 3] = self.regime, self.by_size
        return facts

    def menu(self, embedding: Enclosed) -> OwnMenu:
        """What she is offered, given the embedding (B, S) of her reports."""
        boxes, dimensions = embedding.slope.shape[:2]
        box = torch.arange(boxes)
        left = embedding.constant(torch.ones((), dtype=torch.float64))
        sold = torch.zeros(boxes, 4, dtype=torch.float64)
        unknown = torch.zeros(boxes, dtype=torch.float64)
        moves = torch.zeros(boxes, dimensions, dtype=torch.float64)
        embedding = embedding.with_symbols()  # all offers read the same one
        seen = embedding.times(float(self.share[self.place]) * self.reading)
        for i in range(self.place):
            curve = self.curve(i, left, sold, _rows(seen, box) + self.after[i])
            levels = level_weights(self.privacy_budget[i : i + 1], self.network)[0]
            payment = curve.linear(levels, torch.zeros(len(levels), dtype=torch.float64))
            moves.index_add_(0, box, payment.slope[:, :dimensions].abs().sum(2))
            path, level = favourites(payment, self.values[i]).nonzero(as_tuple=True)
            paid = _of_level(payment, path, level)
            left = (_rows(left, path) - paid).between(0.0, 1.0)
            left = left.expand(1).with_symbols().at(0)
            sold = sold[path] + self.sales(i)[level]
            box = box[path]
            box, left, sold = self._few_paths(box, left, sold, unknown)
        known = embedding.constant(self.after[self.place])
        payment = self.curve(self.place, left, sold, _rows(known, box))
        moves.index_add_(0, box, payment.slope[:, :dimensions].abs().sum(2))
        return OwnMenu(box, payment, unknown, moves)

    def curve(self, i: int, left: Enclosed, sold: Tensor, seen: Enclosed) -> Enclosed:
        """(R, KNOTS) payments at the knots of owner i's curve; left (R,), sold (R, 4), seen (R, S)
        are the money left, what was sold, and the reports of those after her."""
        own, rest = float(self.share[i]), float(self.rest[i])
        following = float(self.share[i + 1]) if i + 1 < self.n else 0.0
        money = _log_money(left)
        owner = [
            own,
            math.log(own * self.n) / 2,
            own / rest,
            rest - own,
            float(self.rest_square[i]),
            following,
        ]
        market = [self.per_record, (self.n - i) / self.n, math.log(self.n) / 3]
        regime = [self.regime, self.regime * math.log(own * self.n) / 2, self.by_size]
        sold_share, noise, sold_loss, squares = sold.T
        past = torch.stack([sold_share, torch.sqrt(noise + 1e-6), sold_loss / 4, squares], 1)
        facts = joined(
            [
                money.expand(1),
                (money + (self.per_record - math.log(rest + 1e-9))).expand(1),
                _numbers(left, owner),
                left.expand(1),
                _numbers(left, market),
                _exactly(left, past),
                _numbers(left, regime),
            ]
        )
        out = f.layers(self.network.offer, joined([facts, seen]))
        guess = min(max(math.log(1.2 * own / (rest - own + 1e-4)), -6.0), 6.0)
        part = f.softplus((out.at(0) + guess).times(-1.0)).times(-1.0)
        steps = out.at(slice(1, None))
        whole = steps.log_sum_exp()
        logs = [steps.at(slice(0, k + 1)).log_sum_exp() - whole for k in range(KNOTS - 1)]
        shares = [f.exponential(part + log.between(-300.0, 0.0), most=0.0) for log in logs]
        shares.append(f.exponential(part, most=0.0))
        payments = [share.product(left).times(MOST) for share in shares]
        curve = stacked(payments)
        return curve.widened(ROUNDING * curve.bounds()[1].clamp(min=0.0) + DUST)

    def sales(self, i: int) -> Tensor:
        """(M + 1, 4) what a sale of each level by owner i adds: share, noise, loss, squares."""
        levels = torch.arange(self.network.levels + 1, dtype=torch.float64) / self.network.levels
        loss, share = levels * self.privacy_budget[i], float(self.share[i])
        seller = torch.where(loss > 0, share, 0.0)
        noise = (seller / loss.clamp(min=0.05)) ** 2
        return torch.stack([seller, noise, share * loss, loss * loss / self.n], 1)

    def _few_paths(
        self, box: Tensor, left: Enclosed, sold: Tensor, unknown: Tensor
    ) -> tuple[Tensor, Enclosed, Tensor]:
        """Drops boxes of too many paths, and writes into `unknown` what money they may have."""
        many = torch.bincount(box, minlength=len(unknown)) > MOST_PATHS
        gone = many[box]
        unknown.scatter_reduce_(0, box[gone], left.bounds()[1][gone], "amax")
        kept = torch.nonzero(~gone)[:, 0]
        return box[kept], _rows(left, kept), sold[kept]


def level_weights(privacy_budget: Tensor, network: MenuNetwork) -> Tensor:
    """(B, M, KNOTS) how payments at knots add up to those of the levels of privacy budgets (B,)."""
    share = torch.arange(1, network.levels + 1, dtype=torch.float64) / network.levels
    return knot_weights(privacy_budget[:, None] * share, network.largest_loss)


def knot_weights(loss: Tensor, largest_loss: float) -> Tensor:
    """(*S, KNOTS) weights of the knots on both sides of losses (*S)."""
    place = (loss * (KNOTS / largest_loss)).clamp(max=float(KNOTS))
    distance = (place[..., None] - torch.arange(1, KNOTS + 1, dtype=torch.float64)).abs()
    return (1.0 - distance).clamp(min=0.0)


def favourites(payment: Enclosed, values: Tensor) -> Tensor:
    """(R, M + 1) which levels, "nothing" first, may be the favourite of an owner who reports
    `values` (M,) and is offered `payment` (R, M)."""
    low, high = payment.bounds()
    center, slope, radius = payment.center, payment.slope, payment.radius
    apart = (slope[..., :, None] - slope[..., None, :]).abs().sum(1)
    most = center[:, :, None] - center[:, None, :] + apart
    most = most + radius[:, :, None] + radius[:, None, :]
    ahead = most >= values[:, None] - values - TIE
    best = ahead.all(2) & (high >= values - TIE)
    nothing = (low < values + TIE).all(1, keepdim=True)
    return torch.cat([nothing, best], 1)


def _log_money(left: Enclosed) -> Enclosed:
    def curvature(low: Tensor, _: Tensor) -> Tensor:
        return 1.0 / (low + SMALL) ** 2

    return left.smooth(lambda t: torch.log(t + SMALL), curvature, domain=(0.0, 1.0))


def _rows(x: Enclosed, index: Tensor) -> Enclosed:
    return Enclosed(*(part[index] for part in vars(x).values()))


def _of_level(x: Enclosed, row: Tensor, level: Tensor) -> Enclosed:
    """(P,) the payments (R, M) of rows and levels (P,); level 0 is paid nothing."""
    sells, at = level > 0, (level - 1).clamp(min=0)
    return Enclosed(
        x.center[row, at] * sells, x.slope[row, :, at] * sells[:, None], x.radius[row, at] * sells
    )


def _numbers(like: Enclosed, numbers: list[float]) -> Enclosed:
    return like.constant(torch.tensor(numbers, dtype=torch.float64))


def _exactly(like: Enclosed, numbers: Tensor) -> Enclosed:
    """Numbers (R, F) that are known on every path."""
    slope = torch.zeros(*like.slope.shape[:2], numbers.shape[1], dtype=torch.float64)
    return Enclosed(numbers, slope, torch.zeros_like(numbers))
