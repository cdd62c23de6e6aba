"""The network of `seq-price`: the next offer, from past sales and public facts.

It never reads what the owner whose turn it is has reported about her valuation or her privacy
budget, so no report can change her own menu.

    size = "certified"   Sizes are public. Owners come from the largest to the smallest, or from the
                         smallest on in noisy markets (`offer_order`), and a menu may depend on all
                         sizes. An offer is a share of the money left, spread over the knots by a
                         rising curve.
    size = "reported"    Sizes are part of the report. Owners come in the order of the bids, and a
                         menu may depend on the sizes of those who have answered. An offer is a
                         price for a record at every knot.

Public are also the number of bidders, the market's kappa (docs/theory.md, section 7), and the scale
of the prior: all money is measured in units of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

FEATURES = 17
SUMMARY = 16  # numbers in a learned summary of a set of owners
SMALL = 1e-3
REACH = 2.5  # of prices for a record around the typical one, in logarithms
PAPER_KAPPA = 8.0
NOISY = 64.0  # kappa from which on the smallest owners come first


def offer_order(data_size: Tensor, kappa: Tensor) -> Tensor:
    """(K, n) the owners in the order of the offers, by certified sizes (K, n) and kappa (K,).

    Where noise is small, large owners matter most and come first. Where it is large, data sizes set
    the costs and not the worth of a sale (docs/theory.md, section 7), and small owners come first.
    """
    key = torch.where(kappa[:, None] < NOISY, -data_size, data_size)
    return torch.argsort(key, dim=1, stable=True)


class PriceNetwork(nn.Module):
    """Facts (K, 17) and summaries of owners -> the offer over the knots (levels,), absolute losses.

    `later` describes an owner who is still to come by her data share, and `earlier` an owner who
    was asked by what she sold. The sums of such descriptions over owners are summaries, of any
    number of owners. `secrets` is the number of facts of the owner's own report that the network
    reads; it is 0 for every mechanism (training/price_training.py has another use).
    """

    kind = "price"
    n = 0  # any number of owners

    def __init__(
        self,
        levels: int,
        hidden: int = 64,
        largest_loss: float = 2.0,
        size: str = "certified",
        typical_size: float = 1.0,
        typical_price: float = 1.0,
        secrets: int = 0,
    ) -> None:
        super().__init__()
        self.levels, self.hidden, self.size, self.secrets = levels, hidden, size, secrets
        self.largest_loss, self.typical_size, self.typical_price = (
            largest_loss,
            typical_size,
            typical_price,
        )
        certified = size == "certified"
        self.earlier = _description(4)
        self.later = _description(3) if certified else None
        summaries = 2 * SUMMARY if certified else SUMMARY
        self.layers = nn.Sequential(
            nn.Linear(FEATURES + summaries + secrets, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, levels + 1),
        )
        for parameter in self.layers[-1].parameters():
            nn.init.zeros_(parameter)

    @property
    def shape_facts(self) -> dict[str, object]:
        """What `weight_files` needs to build the network again."""
        facts = {
            "largest_loss": self.largest_loss,
            "size": self.size,
            "typical_size": self.typical_size,
            "secrets": self.secrets,
        }
        return facts if self.size == "certified" else facts | {"typical_price": self.typical_price}

    def knots(self, dtype: torch.dtype = torch.float64) -> Tensor:
        return torch.arange(1, self.levels + 1, dtype=dtype) * (self.largest_loss / self.levels)

    def forward(self, facts: Tensor) -> Tensor:
        """(K, 1 + levels) raw: how much, and how it is spread."""
        return _through(self.layers, facts, in_place=not self.training)

    def curve(self, facts: Tensor, guess: Tensor) -> tuple[Tensor, Tensor]:
        """(K,) raw size of the offer around a first guess, and the rising curve (K, levels), 1 at
        its end."""
        out = self.forward(facts)
        return out[:, 0] + guess, torch.softmax(out[:, 1:], dim=1).cumsum(1)


def _description(inputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, SUMMARY), nn.SiLU(), nn.Linear(SUMMARY, SUMMARY))


def _through(layers: nn.Sequential, x: Tensor, in_place: bool) -> Tensor:
    for layer in layers:
        x = nn.functional.silu(x, inplace=in_place) if isinstance(layer, nn.SiLU) else layer(x)
    return x


class Standing:
    """The state of K markets while their owners receive offers in turn.

    data_size (K, n) is in the order of the offers, budget (K,) in units of the prior's scale; all
    money here is in shares of the budget. kappa (K,) is that of the markets. `menu(i)` is the offer
    to owner i, and `settle` records her choice. With size = "reported", `menu(i)` reads no size
    from i on. `secrets` (K, n, S) are read by networks that are no mechanisms.
    """

    def __init__(
        self,
        network: PriceNetwork,
        data_size: Tensor,
        budget: Tensor,
        kappa: Tensor | float = PAPER_KAPPA,
        secrets: Tensor | None = None,
    ) -> None:
        self.network, self.data_size, self.budget = network, data_size, budget
        self.secrets = secrets
        markets, self.n = data_size.shape
        zero = data_size.new_zeros(markets)
        noisy = torch.as_tensor(kappa, dtype=data_size.dtype) + zero
        self.regime = torch.log(noisy / PAPER_KAPPA) / 4.0
        self.left = zero + 1.0
        self.sold_share, self.noise, self.sold_loss, self.squares = zero, zero, zero, zero
        self.seen_size = zero
        self.past = data_size.new_zeros((markets, SUMMARY))
        self.certified = network.size == "certified"
        if self.certified:
            total = data_size.sum(1)
            self.share = data_size / total[:, None]
            self.per_record = torch.log(budget.clamp(min=1e-30) / total).clamp(-15.0, 15.0)
            self.rest = self.share.flip(1).cumsum(1).flip(1)
            self.rest_square = (self.share**2).flip(1).cumsum(1).flip(1).sqrt()
            self.log_share = torch.log(self.share * self.n) / 2
            self.future = self._future()
        else:
            self.per_record = torch.log(
                budget.clamp(min=1e-30) / (self.n * network.typical_size)
            ).clamp(-15.0, 15.0)

    def menu(self, i: int) -> Tensor:
        """(K, levels) the offer to owner i.

        With certified sizes: payments at the knots in shares of the budget, none above what is
        left. With reported sizes: unit prices in shares of the budget for `typical_size` x n
        records.
        """
        return self._payments(i) if self.certified else self._unit_prices(i)

    def settle(self, i: int, loss: Tensor, payment: Tensor) -> None:
        """Owner i sold `loss` (K,) for `payment` (K,), in shares of the budget."""
        share = (
            self.share[:, i]
            if self.certified
            else self.data_size[:, i] / (self.n * self.network.typical_size)
        )
        seller = torch.where(loss.detach() > 0, share, torch.zeros_like(share))
        self.left = (self.left - payment).clamp(min=0.0)
        self.sold_share = self.sold_share + seller
        self.noise = self.noise + (seller / loss.detach().clamp(min=0.05)) ** 2
        self.sold_loss = self.sold_loss + share * loss
        self.squares = self.squares + loss * loss / self.n
        self.seen_size = self.seen_size + share
        seen = torch.stack([share, torch.log(share * self.n) / 2, loss, self.regime], dim=1)
        describe = self.network.earlier
        self.past = self.past + _through(describe, seen, not self.network.training) / self.n

    def _future(self) -> Tensor:
        """(K, n, SUMMARY) the summary of everybody after each owner."""
        describe = self.network.later
        assert describe is not None
        regime = self.regime[:, None].expand_as(self.share)
        facts = torch.stack([self.share, self.log_share, regime], dim=2)
        each = _through(describe, facts, not self.network.training) / self.n
        return torch.as_tensor(each.flip(1).cumsum(1).flip(1) - each)

    def _payments(self, i: int) -> Tensor:
        own = self.share[:, i]
        after = self.rest[:, i] - own
        following = self.share[:, i + 1] if i + 1 < self.n else torch.zeros_like(own)
        money = torch.log(self.left + SMALL)
        facts = [
            money,
            money - torch.log(self.rest[:, i] + 1e-9) + self.per_record,
            own,
            self.log_share[:, i],
            own / self.rest[:, i],
            after,
            self.rest_square[:, i],
            following,
        ]
        guess = torch.log(1.2 * own / (after + 1e-4)).clamp(-6.0, 6.0)
        size, curve = self.network.curve(self._facts(facts, i), guess)
        return curve * (torch.sigmoid(size) * self.left)[:, None]

    def _unit_prices(self, i: int) -> Tensor:
        money = torch.log(self.left + SMALL)
        seen = self.seen_size
        mean = torch.log(seen * self.n / max(i, 1) + SMALL) / 2
        facts = [
            money,
            money - math.log((self.n - i) / self.n) + self.per_record,
            seen,
            mean,
            torch.log(seen + SMALL) / 3,
            self.sold_share / (seen + 1e-6),
            torch.log(self.n * torch.sqrt(self.noise) + SMALL) / 3,
            torch.zeros_like(seen),
        ]
        size, curve = self.network.curve(self._facts(facts, i), torch.zeros_like(money))
        around = math.log(self.network.typical_price) + REACH * torch.tanh(size / REACH)
        return curve * torch.exp((around - self.per_record).clamp(-30.0, 30.0))[:, None]

    def _facts(self, particular: list[Tensor], i: int) -> Tensor:
        def everywhere(x: float) -> Tensor:
            return torch.full_like(self.left, x)

        common = [
            self.left,
            self.per_record,
            everywhere((self.n - i) / self.n),
            everywhere(math.log(self.n) / 3),
            self.sold_share,
            torch.sqrt(self.noise + 1e-6),
            self.sold_loss / 4,
            self.squares,
            self.regime,
        ]
        parts = [torch.stack(particular + common, dim=1), self.past]
        if self.certified:
            parts.append(self.future[:, i])
        if self.secrets is not None:
            parts.append(self.secrets[:, i])
        return torch.cat(parts, dim=1)
