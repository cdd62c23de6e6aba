"""Bounds of what a report earns from a `PaperNetwork`: its twin over boxes of reports.

This file follows auctions/learned/paper_network.py and level_outcome.py with enclosed quantities in
place of tensors. Coordinates are log(value / records), log privacy budget and log records.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from flmarket_sim.auctions.learned.paper_network import PaperNetwork
from flmarket_sim.auctions.learned.weight_files import Learned
from flmarket_sim.strategy.certified import smooth_functions as f
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, joined, stacked
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.report_boxes import ReportBoxes, small_influence
from flmarket_sim.strategy.misreports import Floats

FAR = 1e7  # of the other values: what larger values change is below FEATURE_SLACK
FEATURE_SLACK = 1e-6
LARGEST_FEATURE = 3.5e38  # single precision has no larger number
SAME = 1e-9  # relative: columns whose range may vanish
ROUNDING = 1e-4  # of a payment and of a logit: single precision, far above what was measured


class PaperNetworkBounds:
    """Upper bounds of the true (expected) utility over boxes of reports of one owner."""

    def __init__(self, learned: Learned, owner: LyingOwner) -> None:
        assert isinstance(learned.network, PaperNetwork)
        self.network, self.learned, self.owner = learned.network, learned, owner
        self.levels = learned.network.levels
        self.boxes = ReportBoxes(owner, self.levels)
        bids, others = owner.bids, owner.others
        size = bids.data_size[0, others]
        values = bids.at_levels(self.levels)[0, others] / size[:, None]
        self.unit = torch.from_numpy(values)
        self.sizes, self.log_others = torch.from_numpy(size), math.log(size.sum())
        self.budgets = torch.from_numpy(bids.privacy_budget[0, others])

    def whole(self) -> tuple[Floats, Floats]:
        """The box of all reports; beyond it features change by less than their slack."""
        money = self.owner.money / math.exp(self.log_others)
        top, bottom = float(self.unit.max()), float(self.unit.min())
        width = top - bottom if top - bottom > SAME * top else max(top, money, 1e-30)
        weight = self.boxes.weights[self.boxes.weights > 0].min()
        least = np.full(self.boxes.values, math.log(width / FAR))
        most = np.full(self.boxes.values, math.log(max(top, money, width) * FAR / weight))
        return self.boxes.whole(least, most)

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Upper bounds (B,) of the utility in boxes (B, D), and influences (B, D)."""
        low, high, exist = self.boxes.rising(low, high)
        with torch.inference_mode():
            x = Enclosed.of_boxes(torch.from_numpy(low), torch.from_numpy(high))
            inputs = self.features(x).with_symbols()
            money = f.layers(self.network.payment_head, inputs, symbols=True)
            own = self.owner.index
            fraction = (money - money.at(own).expand(self.network.n + 1)).log_sum_exp().times(-1.0)
            fraction = fraction.without_symbols(inputs.slope.shape[1])
            payment = f.exponential(fraction, most=0.0)
            logits = f.layers(self.network.allocation_head, inputs, symbols=True)
            mine = logits.at(slice(own * (self.levels + 1), (own + 1) * (self.levels + 1)))
            most = self._surplus(payment, mine, low, high) + ROUNDING * payment.bounds()[1]
            D = low.shape[1]
            first = inputs.slope[:, :D].abs().sum(2)
            influence = fraction.slope[:, :D].abs() + small_influence(first, low, high)
        bound = np.minimum(most.numpy(), 1 + ROUNDING) * self.owner.money
        return np.where(exist, bound, -np.inf), influence.numpy()

    def _surplus(self, payment: Enclosed, logits: Enclosed, low: Floats, high: Floats) -> Tensor:
        """(B,) payment less cost in shares of the budget. Logits (B, M + 1) have "nothing" last."""
        log_cost = self.boxes.log_cost(low, high) + -math.log(self.owner.money)
        least = self.boxes.least_cost(low) / self.owner.money
        count = self.levels + 1
        if not self.learned.deterministic:
            chance = stacked(
                [(logits - logits.at(m).expand(count)).log_sum_exp() for m in range(self.levels)]
            ).times(-1.0)
            chance = chance.without_symbols(payment.slope.shape[1]).between(-math.inf, 0.0)
            cost = f.exponential(chance + log_cost)
            plain = (torch.exp(chance.bounds()[0]) * least).sum(1)
            together = (payment - cost.sum()).bounds()[1]
            return torch.minimum(together, payment.bounds()[1] - plain)
        each = (payment.expand(self.levels) - f.exponential(log_cost)).bounds()[1]
        each = torch.minimum(each, payment.bounds()[1][:, None] - least)
        each = torch.cat([each, payment.bounds()[1][:, None]], 1)  # "nothing" is paid, too
        leads = stacked([logits.at(m).expand(count) - logits for m in range(count)])
        above = leads.bounds()[1].transpose(1, 2)
        if not self.learned.keeps_zero:
            above = torch.cat([above[:, :, :-1], torch.ones_like(above[:, :, -1:])], 2)
            above[:, -1] = -torch.inf
        possible = (above >= -2 * ROUNDING).all(2)
        return torch.where(possible, each, -torch.inf).amax(1)

    def features(self, x: Enclosed) -> Enclosed:
        """(B, n (M + 2) + 1) the input of both networks."""
        n, own, levels = self.network.n, self.owner.index, self.levels
        log_money = f.softplus(x.at(-1) + -self.log_others).times(-1.0) + (
            math.log(self.owner.money) - self.log_others
        )
        mine, theirs, money = normalised(
            self.boxes.log_values(x), self.unit.flatten(), log_money.expand(1)
        )
        budget, budgets = self._column(x, x.at(-2), self.budgets)
        size, sizes = self._column(x, x.at(-1), self.sizes)
        columns = []
        for j in range(n):
            if j == own:
                columns += [mine, budget, size]
                continue
            other = j - (j > own)
            block = slice(other * levels, (other + 1) * levels)
            columns += [theirs.at(block), budgets.at(slice(other, other + 1))]
            columns += [sizes.at(slice(other, other + 1))]
        return joined([*columns, money])

    def _column(self, x: Enclosed, own: Enclosed, others: Tensor) -> tuple[Enclosed, Enclosed]:
        """Own feature (B, 1) and the others' (B, n - 1) of a column whose last entry does not count
        for its mean and range."""
        if self.owner.index < self.network.n - 1:
            last = x.constant(torch.log(others[-1:]))
            mine, counted, uncounted = normalised(own.expand(1), others[:-1], last)
            return mine, joined([counted, uncounted])
        width = float(others.max() - others.min())
        if width == 0.0:
            nothing = x.constant(torch.zeros_like(others))
            return nothing.at(slice(0, 1)), nothing
        mine = f.exponential(own.expand(1)) + -float(others.mean())
        return mine.times(1.0 / width), x.constant((others - others.mean()) / width)


def normalised(
    own: Enclosed, others: Tensor, uncounted: Enclosed
) -> tuple[Enclosed, Enclosed, Enclosed]:
    """Features of a group: logs of own numbers (B, J), which rise, other numbers (m,), and the log
    of the last one (B, 1), which does not count. Each is less the mean and over the range."""
    J, m = own.center.shape[-1], len(others)
    nobody = own.constant(torch.zeros_like(others))
    if m + J == 1:  # of one column the range is 0, and so are the features
        return own.times(0.0), nobody, uncounted.times(0.0)
    if m == 0:
        anything = uncounted.times(0.0).widened(LARGEST_FEATURE)
        return own.times(0.0).widened(1.0), nobody, anything
    top, bottom = max(float(others.max()), 1e-29), max(float(others.min()), 1e-30)
    highest = own.at(-1).clamp(math.log(top), math.inf)
    lowest = own.at(0).clamp(-math.inf, math.log(bottom))
    apart = lowest - highest
    alike = math.log(bottom / top) > -SAME  # then the range vanishes where her number is like them
    most = -SAME if alike else math.log(bottom / top)
    vanishing = ((apart.bounds()[1] > -SAME) & alike)[:, None].double() * LARGEST_FEATURE
    log_width = highest + f.log_of_rest(apart, most)
    per_width = f.exponential(
        log_width.times(-1.0), most=300.0 if alike else -math.log(top - bottom)
    )
    numbers = f.exponential(
        own - log_width.expand(J), most=300.0 if alike else -math.log1p(-bottom / top)
    )
    mean = (per_width.times(float(others.sum())) + numbers.sum()).times(1.0 / (m + J))
    theirs = per_width.expand(m).times(others) - mean.expand(m)
    last = f.exponential(uncounted - log_width.expand(1)) - mean.expand(1)
    slack = vanishing + FEATURE_SLACK
    return (
        (numbers - mean.expand(J)).widened(slack).between(-1.0, 1.0),
        theirs.widened(slack).between(-1.0, 1.0),
        last.widened(slack).between(-LARGEST_FEATURE, LARGEST_FEATURE),
    )
