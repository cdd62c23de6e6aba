"""Bounds of what a report earns from a `MenuNetwork`: her menu, and her levels on it.

Coordinates are log(value / fair part of the budget), log privacy budget and log records, which are
certified and stay what they are. What she is offered follows from the offers before hers
(offers_in_turn.py). Her menu is a price curve over privacy losses; her reported budget says which
losses her levels are, and her reported values say which level she gets. In a randomised auction a
coin says in which direction the money goes, and utility is the mean of both.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from flmarket_sim.auctions.learned.menu_network import MenuNetwork
from flmarket_sim.strategy.certified import smooth_functions as f
from flmarket_sim.strategy.certified.linear_bounds import Enclosed, joined
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.offers_in_turn import EnclosedOffers, OwnMenu, knot_weights
from flmarket_sim.strategy.certified.report_boxes import ReportBoxes, small_influence
from flmarket_sim.strategy.misreports import Floats

FLOOR = 1e-6  # that the network adds before it takes a log
CUT = 6.0  # where it cuts logs
NO_VALUE = 20.0  # a value of exp(-20) of the fair part changes nothing that is visible
CELLS = 16  # parts of the reported budgets of a box, in each of which cost is bounded by itself


class MenuNetworkBounds:
    """Upper bounds of the true (expected) utility over boxes of reports of one owner."""

    def __init__(
        self,
        network: MenuNetwork,
        owner: LyingOwner,
        *,
        kappa: float,
        by_size: float,
        deterministic: bool,
    ) -> None:
        self.network, self.owner = network, owner
        self.boxes = ReportBoxes(owner, network.levels)
        self.directions = [
            EnclosedOffers(
                network, owner.bids, owner.money, owner.index,
                kappa=kappa, by_size=by_size, upwards=upwards,
            )
            for upwards in ((False,) if deterministic else (False, True))
        ]  # fmt: skip
        one = self.directions[0]
        self.log_share = math.log(float(one.share[one.place]))
        self.facts = one.report_facts()[one.place, 1:]
        # The first owner's menu reads no report, and she can get any loss on it by some table.
        self.moves_offers = any(direction.place for direction in self.directions)
        mixed = ((self.boxes.weights > 0).sum(axis=0) > 1).any()
        self.least = -NO_VALUE if mixed else -CUT - 0.01

    def whole(self) -> tuple[Floats, Floats]:
        """The box of all reports; beyond it nothing changes any more."""
        weight = self.boxes.weights[self.boxes.weights > 0].min()
        most = -self.log_share - math.log(weight) if self.moves_offers else self.least
        return self.boxes.whole(
            np.full(self.boxes.values, self.least),
            np.full(self.boxes.values, max(most, self.least)),
        )

    def __call__(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Upper bounds (B,) of the utility in boxes (B, D), and influences (B, D)."""
        low, high, exist = self.boxes.rising(low, high)
        with torch.inference_mode():
            x = Enclosed.of_boxes(torch.from_numpy(low), torch.from_numpy(high))
            values = self.boxes.log_values(x).clamp(-math.inf, -self.log_share)
            embedding, first = self.embedding(x, values)
            menus = [direction.menu(embedding) for direction in self.directions]
            surplus = [self._surplus(menu, values, low, high) for menu in menus]
            bound = torch.stack(surplus).mean(0).numpy() * self.owner.money
            influence = sum((menu.moves for menu in menus), small_influence(first, low, high))
        return np.where(exist, bound, -np.inf), influence.numpy()

    def embedding(self, x: Enclosed, values: Enclosed) -> tuple[Enclosed, Tensor]:
        """(B, S) of her report, and the slopes (B, D) of its first layer."""
        prices = f.log_with_floor(values, FLOOR).clamp(-CUT, CUT).times(0.5)
        inputs = joined([prices, x.at(-2).expand(1), x.constant(self.facts)])
        first = f.layers(self.network.embed[:1], inputs)
        return f.layers(self.network.embed[1:], first), first.slope.abs().sum(2)

    def _surplus(self, menu: OwnMenu, values: Enclosed, low: Floats, high: Floats) -> Tensor:
        """(B,) the most that she gains on any path, in shares of the buyer's money."""
        box, budget = menu.box, self.boxes.values
        ends = torch.from_numpy(np.exp(low[:, budget])), torch.from_numpy(np.exp(high[:, budget]))
        share = torch.from_numpy(self.boxes.share)
        parts = torch.arange(CELLS + 1, dtype=torch.float64) / CELLS
        budgets = ends[0][:, None] + (ends[1] - ends[0])[:, None] * parts
        losses = budgets[..., None] * share  # (B, CELLS + 1, M)
        size = float(self.owner.types.data_size)
        sold = losses[:, :-1].numpy()
        cost = self.owner.cost(sold, np.full(sold.shape, size)) / self.owner.money
        cheapest = torch.from_numpy(cost)
        weights = knot_weights(losses, self.network.largest_loss)
        least, most = (bound.clamp(min=0.0) for bound in menu.payment.bounds())
        most_paid = torch.einsum("rk,rcmk->rcm", most, weights[box])
        surplus = (most_paid[:, 1:] - cheapest[box]).amax(1)
        if self.moves_offers:
            least_paid = torch.einsum("rk,rmk->rm", least, weights[box, 0])
            asked = self._asked(values, low)
            possible = _possible(least_paid, most_paid[:, -1], asked[0][box], asked[1][box])
            surplus = torch.where(possible, surplus, 0.0)
        unknown = menu.unknown[:, None] - cheapest[:, 0]
        result = torch.where(menu.unknown[:, None] > 0, unknown, 0.0).amax(1).clamp(min=0.0)
        return result.scatter_reduce(0, box, surplus.amax(1).clamp(min=0.0), "amax")

    def _asked(self, values: Enclosed, low: Floats) -> tuple[Tensor, Tensor]:
        """(B, M) the least and the largest reported values, in shares of the buyer's money. At the
        lower end of a coordinate stand all smaller values, down to 0."""
        least, most = (torch.exp(bound + self.log_share) for bound in values.bounds())
        smallest = torch.from_numpy((low[:, : self.boxes.values] <= self.least).any(axis=1))
        unseen = math.exp(self.least + self.log_share) * smallest
        return (least - unseen[:, None]).clamp(min=0.0), most


def _possible(
    least_paid: Tensor, most_paid: Tensor, least_asked: Tensor, most_asked: Tensor
) -> Tensor:
    """(R, M) whether a report may prefer each level on the menu that it produces."""
    best = (least_paid - most_asked).amax(1, keepdim=True).clamp(min=0.0)
    return most_paid - least_asked + 1e-9 >= best
