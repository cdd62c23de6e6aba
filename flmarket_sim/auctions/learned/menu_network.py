"""The network of the `fast` preset: a learned menu for every owner, who gets her favourite.

The buyer's money is handed down from the largest owner to the smallest. An owner's menu is a price
curve over absolute privacy losses, a part of the money that is left, and she gets the one of her M
levels that she likes best by her report, or nothing. So no owner is paid below her report and no
budget is overspent.

A menu depends on public facts (sizes, money, the market's kappa and rule) and on what those before
her have sold, but never on her own report. A network that looks ahead also reads the reports of
those after her. Then a report can change its owner's menu by changing what those before her are
offered, and training keeps that small. The first owner's report cannot change her menu at all.

The same weights serve any number of owners, any kappa between 8 and 100,000 and two rules. A
randomised auction tosses a coin: the money goes from the largest owner to the smallest, or the
other way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

FACTS = 19
KNOTS = 12  # of a price curve
SMALL = 1e-3
MOST = 1.0 - 1e-6  # no payment is the whole budget, at which values are cut
KAPPAS = (8.0, 1e5)  # the regimes that trainings draw from
FARTHEST = 1e20  # of a fact from 0: from here on layers in single precision could overflow


class Menus(NamedTuple):
    """What K markets are offered, and what their owners take.

    payment  (K, n, M) for m / M of the reported privacy budgets, rising in m
    level    (K, n) the favourite levels, 0 for nothing
    share    (K, n) level / M, with the slope of a soft choice if there was a temperature
    """

    payment: Tensor
    level: Tensor
    share: Tensor


class MenuNetwork(nn.Module):
    """`forward` plays markets: it gives the menus and the favourites of all owners."""

    kind = "menu-in-turn"
    n = 0  # any number of owners

    def __init__(
        self, levels: int, hidden: int = 96, largest_loss: float = 2.0, looks_ahead: bool = True
    ) -> None:
        super().__init__()
        self.looks_ahead = looks_ahead
        self.levels, self.hidden, self.largest_loss = levels, hidden, largest_loss
        self.seen = max(hidden // 3, 1)
        self.embed = nn.Sequential(
            nn.Linear(levels + 4, self.seen), nn.SiLU(), nn.Linear(self.seen, self.seen), nn.Tanh()
        )
        self.offer = nn.Sequential(
            nn.Linear(FACTS + self.seen, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, KNOTS + 1),
        )
        for parameter in self.offer[-1].parameters():
            nn.init.zeros_(parameter)

    @property
    def precision(self) -> torch.dtype:
        return next(self.parameters()).dtype

    @property
    def shape_facts(self) -> dict[str, object]:
        """What `weight_files` needs to build the network again."""
        return {
            "largest_loss": self.largest_loss,
            "looks_ahead": self.looks_ahead,
            "kappas": list(KAPPAS),
        }

    def forward(
        self,
        values: Tensor,
        privacy_budget: Tensor,
        data_size: Tensor,
        budget: Tensor,
        kappa: Tensor,
        by_size: Tensor,
        temperature: float | None = None,
        upwards: Tensor | None = None,
    ) -> Menus:
        """Menus and favourites for the columns of `ReportTensors`.

        `upwards` (K,) is true where the money goes from the smallest owner to the largest.
        Money is counted in the precision of the values, the network in its own.
        """
        order = data_size.argsort(dim=1, descending=True, stable=True)
        if upwards is not None:
            order = torch.where(upwards[:, None], order.flip(1), order)
        back = order.argsort(dim=1)
        values = values.gather(1, order[..., None].expand_as(values))
        privacy_budget, data_size = privacy_budget.gather(1, order), data_size.gather(1, order)
        money = budget.clamp(min=1e-30)
        # A buyer without money pays less than any value, also than one that was cut at her money.
        some = torch.where(budget > 0, budget, 1.0)[:, None, None]
        asked = torch.where(budget[:, None, None] > 0, values / some, 1.0)
        sale = _Sale(self, values, privacy_budget, data_size, money, kappa, by_size)
        offers, levels, shares = [], [], []
        for i in range(values.shape[1]):
            payment = sale.menu(i)
            level, share, paid = _favourite(payment, asked[:, i], temperature, self.levels)
            sale.settle(i, share * sale.privacy_budget[:, i], paid)
            offers.append(payment * budget[:, None])
            levels.append(level)
            shares.append(share)
        payments = torch.stack(offers, 1)
        return Menus(
            payments.gather(1, back[..., None].expand_as(payments)),
            torch.stack(levels, 1).gather(1, back),
            torch.stack(shares, 1).gather(1, back),
        )


def readable(facts: Tensor, precision: torch.dtype) -> Tensor:
    """Facts of any market as numbers that a network of this precision can read.

    Only numbers far beyond any training are changed: they are cut, and 0 / 0 counts as 0.
    """
    known = torch.nan_to_num(facts, nan=0.0, posinf=FARTHEST, neginf=-FARTHEST)
    return known.clamp(-FARTHEST, FARTHEST).to(precision)


def _favourite(
    payment: Tensor, values: Tensor, temperature: float | None, levels: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(K,) level, its share of the privacy budget, and its payment; ties go to the larger sale."""
    utility = payment - values
    best = utility.shape[1] - 1 - utility.flip(1).argmax(1, keepdim=True)
    sells = utility.gather(1, best) >= 0
    level = torch.where(sells, best + 1, 0)[:, 0]
    paid = (payment.gather(1, best) * sells)[:, 0]
    share = level.to(payment.dtype) / levels
    if temperature is None:
        return level, share, paid
    heat = temperature * payment[:, -1:].detach() + 1e-9
    chance = torch.softmax(nn.functional.pad(utility, (1, 0)) / heat, dim=1)[:, 1:]
    soft = (chance * (torch.arange(1, levels + 1) / levels)).sum(1)
    price = (chance * payment).sum(1)
    return level, share + soft - soft.detach(), paid.detach() + price - price.detach()


class _Sale:
    """K markets while their money is handed down; all money here is in shares of the budget.

    Columns are in the order of the offers.
    """

    def __init__(
        self,
        network: MenuNetwork,
        values: Tensor,
        privacy_budget: Tensor,
        data_size: Tensor,
        budget: Tensor,
        kappa: Tensor,
        by_size: Tensor,
    ) -> None:
        self.network, self.privacy_budget = network, privacy_budget
        self.n = data_size.shape[1]
        total = data_size.sum(1)
        self.share = data_size / total[:, None]
        self.per_record = torch.log(budget / total).clamp(-15.0, 15.0)
        self.rest = self.share.flip(1).cumsum(1).flip(1)
        self.rest_square = (self.share**2).flip(1).cumsum(1).flip(1).sqrt()
        self.regime = torch.log(kappa.clamp(*KAPPAS) / 8.0) / 5.0
        self.by_size = by_size
        self.left = torch.ones_like(total)
        zero = torch.zeros_like(total)
        self.sold_share, self.noise, self.sold_loss, self.squares = zero, zero, zero, zero
        self._read(values, budget)
        self._place_levels()

    def _read(self, values: Tensor, budget: Tensor) -> None:
        """The reports as embeddings; `after` has their sum over those after each owner.

        Each counts by its owner's share of the records: a small owner's report, which is worth
        little to the others, can hardly move the menus before hers.
        """
        if not self.network.looks_ahead:
            nobody = values.new_zeros(
                (len(values), self.network.seen), dtype=self.network.precision
            )
            self.after = [nobody] * self.n
            return
        fair = (budget[:, None] * self.share).clamp(min=1e-30)
        prices = torch.log(values / fair[..., None] + 1e-6).clamp(-6.0, 6.0) / 2.0
        facts = [
            torch.log(self.privacy_budget),
            torch.log(self.n * self.share) / 2.0,
            self.regime[:, None].expand(-1, self.n),
            self.by_size[:, None].expand(-1, self.n),
        ]
        owners = torch.cat([prices, torch.stack(facts, -1)], -1)
        read = self.network.embed(readable(owners, self.network.precision))
        each = read * self.share[..., None].to(read.dtype)
        self.after = [torch.zeros_like(each[:, 0])]
        for i in range(self.n - 1, 0, -1):
            self.after.insert(0, self.after[0] + each[:, i])

    def _place_levels(self) -> None:
        """Where the levels of all owners lie between the knots of a curve."""
        levels = self.network.levels
        share = torch.arange(1, levels + 1, dtype=self.share.dtype) / levels
        place = self.privacy_budget[..., None] * share * (KNOTS / self.network.largest_loss)
        place = place.clamp(max=float(KNOTS))
        self.below = place.floor().clamp(max=KNOTS - 1).long()
        self.between = place - self.below

    def menu(self, i: int) -> Tensor:
        """(K, M) payments to owner i for her levels, none above what is left."""
        own, rest = self.share[:, i], self.rest[:, i]
        after = rest - own
        following = self.share[:, i + 1] if i + 1 < self.n else torch.zeros_like(own)
        money = torch.log(self.left + SMALL)
        facts = torch.stack(
            [
                money,
                money - torch.log(rest + 1e-9) + self.per_record,
                own,
                torch.log(own * self.n) / 2,
                own / rest,
                after,
                self.rest_square[:, i],
                following,
                self.left,
                self.per_record,
                torch.full_like(own, (self.n - i) / self.n),
                torch.full_like(own, math.log(self.n) / 3),
                self.sold_share,
                torch.sqrt(self.noise + 1e-6),
                self.sold_loss / 4,
                self.squares,
                self.regime,
                self.regime * torch.log(own * self.n) / 2,
                self.by_size,
            ],
            dim=1,
        )
        seen = self.after[i]
        out = self.network.offer(torch.cat([readable(facts, seen.dtype), seen], 1)).to(own.dtype)
        guess = torch.log(1.2 * own / (after + 1e-4)).clamp(-6.0, 6.0)
        curve = nn.functional.pad(torch.softmax(out[:, 1:], dim=1).cumsum(1), (1, 0))
        low, high = (curve.gather(1, self.below[:, i] + more) for more in (0, 1))
        part = (low + self.between[:, i] * (high - low)).clamp(max=1.0)
        return part * (torch.sigmoid(out[:, 0] + guess) * MOST * self.left)[:, None]

    def settle(self, i: int, loss: Tensor, payment: Tensor) -> None:
        """Owner i sold `loss` (K,) for `payment` (K,)."""
        share, held = self.share[:, i], loss.detach()
        seller = torch.where(held > 0, share, torch.zeros_like(share))
        self.left = (self.left - payment).clamp(min=0.0)
        self.sold_share = self.sold_share + seller
        self.noise = self.noise + (seller / held.clamp(min=0.05)) ** 2
        self.sold_loss = self.sold_loss + share * loss
        self.squares = self.squares + loss * loss / self.n
