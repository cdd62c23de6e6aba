"""Bounds of what a report earns from a `MenuNetwork`: its twin over boxes of reports.

This file follows auctions/learned/menu_network.py and the reading of its menus in regretnet.py line
by line, with enclosed quantities in place of tensors. Coordinates are log(value / fair part of the
budget), log privacy budget and log records.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.auctions.learned.regretnet import TIE
from flmarket_sim.strategy.certified import smooth_functions as f
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, joined, stacked
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.report_boxes import ReportBoxes, small_influence
from flmarket_sim.strategy.misreports import Floats

FLOOR = 1e-6  # that the network adds before it takes a log
CUT = 6.0  # where it cuts logs
NO_VALUE = 20.0  # a value of exp(-20) of the fair part changes nothing that is visible
ROUNDING = 1e-4  # of a payment: single precision, far above what was measured


class MenuNetworkBounds:
    """Upper bounds of the true utility over boxes of reports of one owner."""

    def __init__(self, network: MenuNetwork, owner: LyingOwner) -> None:
        self.network, self.owner = network, owner
        self.boxes = ReportBoxes(owner, network.levels)
        bids, others = owner.bids, owner.others
        values = np.minimum(bids.at_levels(network.levels)[0, others], owner.money)
        size = bids.data_size[0, others]
        self.n = bids.shape[1]
        self.log_share_values = _log(values / owner.money) + math.log(size.sum())
        self.log_share_values -= torch.log(torch.from_numpy(size))[:, None]
        self.log_size = torch.log(torch.from_numpy(size))
        self.log_others = math.log(size.sum())
        self.log_rest = _log(values[:, -1].sum(keepdims=True) / owner.money)
        self.log_budgets = torch.log(torch.from_numpy(bids.privacy_budget[0, others]))

    def whole(self) -> tuple[Floats, Floats]:
        """The box of all reports; beyond it nothing changes any more."""
        mixed = ((self.boxes.weights > 0).sum(axis=0) > 1).any()
        least = np.full(self.boxes.values, -NO_VALUE if mixed else -CUT - 0.01)
        least[-1] = -NO_VALUE
        smallest = np.exp(self.owner.limits()[0][1])
        share = smallest / (smallest + math.exp(self.log_others))
        weight = self.boxes.weights[self.boxes.weights > 0].min()
        most = np.full(self.boxes.values, -math.log(share) - math.log(weight))
        return self.boxes.whole(least, np.maximum(most, least))

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Upper bounds (B,) of the utility in boxes (B, D), and influences (B, D)."""
        low, high, exist = self.boxes.rising(low, high)
        with torch.inference_mode():
            x = Enclosed.of_boxes(torch.from_numpy(low), torch.from_numpy(high))
            over = f.softplus(x.at(-1) + -self.log_others)  # log(all records / those of others)
            log_share = x.at(-1) + -self.log_others - over
            values = self._within_means(self.boxes.log_values(x), log_share)
            payment, first = self.payments(x, values, over, log_share)
            paid = f.exponential(payment, most=0.0)
            cost = f.exponential(self.boxes.log_cost(low, high) + -math.log(self.owner.money))
            least = self.boxes.least_cost(low) / self.owner.money
            most = paid.bounds()[1] * (1 + ROUNDING)
            surplus = torch.minimum((paid - cost).bounds()[1] + ROUNDING * most, most - least)
            asked = f.exponential(values + log_share.expand(len(least[0])), most=0.0)
            # At the lower end of a coordinate stand all smaller values, down to 0.
            ends = torch.from_numpy((low[:, : self.boxes.values] <= -CUT).any(axis=1))
            unseen = math.exp(-CUT) * torch.exp(log_share.bounds()[1]) * ends
            surplus = torch.where(_possible(paid, asked, unseen), surplus, -torch.inf)
            bound = surplus.amax(1).clamp(min=0.0).numpy() * self.owner.money
            influence = payment.slope.abs().sum(2) + small_influence(first, low, high)
        return np.where(exist, bound, -np.inf), influence.numpy()

    def _within_means(self, values: Enclosed, log_share: Enclosed) -> Enclosed:
        """Log values over the fair part, none above the buyer's money."""
        cap = log_share.times(-1.0).expand(values.center.shape[-1])
        pair = stacked([values.times(-1.0), cap.times(-1.0)])
        return pair.largest(pair.center.dim() - 2).times(-1.0)

    def payments(
        self, x: Enclosed, values: Enclosed, over: Enclosed, log_share: Enclosed
    ) -> tuple[Enclosed, Tensor]:
        """(B, M) logs of payments over the budget, and the slopes (B, D) of the
        first layer. Row 0 of the owners below is the liar."""
        net, n = self.network, self.n
        theirs = over.expand(n - 1).times(-1.0) + (self.log_size - self.log_others)
        shares = joined([log_share.expand(1), theirs]) + math.log(n)
        relative = over.expand(n - 1).expand(net.levels) + (self.log_share_values)
        prices = joined([Enclosed(*(p[..., None, :] for p in vars(values).values())), relative], -2)
        prices = f.log_with_floor(prices, FLOOR).clamp(-CUT, CUT).times(0.5)
        own_top = (values.at(-1) + log_share).expand(1)
        rest = x.constant(self.log_rest)
        total = joined([own_top, rest]).log_sum_exp()
        wealth = f.log_with_floor(total.times(-1.0), FLOOR).clamp(-CUT, CUT)
        budgets = joined([x.at(-2).expand(1), x.constant(self.log_budgets)])
        facts = stacked([budgets, shares.times(0.5), wealth.expand(n)])
        first = f.layers(net.embed[:1], joined([prices, facts]))
        each = f.layers(net.embed[1:], first)
        everybody = joined([_mean(each), each.largest(0)])
        spread = Enclosed(
            everybody.center[:, None].expand(-1, n, -1),
            everybody.slope[:, :, None].expand(-1, -1, n, -1),
            everybody.radius[:, None].expand(-1, n, -1),
        )
        out = f.layers(net.offer, joined([each, spread]))
        unspent = f.layers(nn.Sequential(net.unspent), everybody) + math.log(n)
        logits = joined([out.at(slice(None), 0) + shares, unspent])
        fraction = (logits - logits.at(0).expand(n + 1)).log_sum_exp().times(-1.0)
        steps = out.at(0, slice(1, None)).clamp(-60.0, 60.0)
        whole = steps.log_sum_exp()
        curve = [steps.at(slice(0, m + 1)).log_sum_exp() - whole for m in range(net.levels - 1)] + [
            whole - whole
        ]
        payments = stacked([fraction + part.between(-130.0, 0.0) for part in curve])
        return payments, first.slope.abs().sum((2, 3))


def _possible(paid: Enclosed, asked: Enclosed, unseen: Tensor) -> Tensor:
    """(B, M) whether a report may prefer each level on the menu that it produces. Reports may ask
    for less than it seems by `unseen` (B,)."""
    least_paid, most_paid = paid.bounds()
    least_asked, most_asked = asked.bounds()
    least_asked = (least_asked - unseen[:, None]).clamp(min=0.0)
    best = (least_paid - most_asked).amax(1, keepdim=True).clamp(min=0.0)
    near = (TIE + ROUNDING) * most_paid[:, -1:] + ROUNDING * most_paid
    return most_paid - least_asked + near >= best


def _mean(each: Enclosed) -> Enclosed:
    return Enclosed(each.center.mean(1), each.slope.mean(2), each.radius.mean(1))


def _log(values: Floats) -> Tensor:
    return torch.from_numpy(np.log(np.maximum(values, 1e-200)))
