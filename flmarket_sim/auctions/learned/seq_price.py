"""seq-price: owners are asked in turn, and each gets the best of a menu that she cannot change.

It is truthful, individually rational and budget-feasible for every valuation by construction
(docs/theory.md, section 4; docs/seq-price.md). The menus are learned. With certified sizes an offer
is a price curve p(e) over a public grid of privacy losses, and the owner gets its best point within
her privacy budget. With reported sizes an offer is a price for a record at each of some losses, for
as many records as the money lasts, and she gets the best pair (loss, records) within her report.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.auctions.auction import Floats, Offer, Outcome, check_budget
from flmarket_sim.auctions.learned.favourite import Reading, favourite_on_curve, favourite_pair
from flmarket_sim.auctions.learned.regime import kappas_of
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.threads import one_torch_thread

if TYPE_CHECKING:
    from torch import Tensor

CHUNK = 2048  # markets played at once
LARGEST = float(np.finfo(np.float32).max)
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sequence:
    """A round in the order of the offers.

    order (K, n) owners; privacy_loss (L,) and menu (K, n, L) as in `Offer`; chosen_* (K, n).
    """

    order: Ints
    privacy_loss: Floats
    menu: Floats
    chosen_loss: Floats
    chosen_payment: Floats
    chosen_size: Floats


class SeqPrice:
    """Learned menus, one owner after the other: no report beats the truth, whatever her valuation.

    Her report is read at the losses of the menu, and truthful bids state her valuation there. A bid
    that states a table only is read as that table, rounded up between levels (docs/seq-price.md).

    With `size = "certified"`, the broker knows the sizes; order and menus depend on them, and no
    misreport of values or privacy budget pays. With `size = "reported"`, neither an owner's place
    nor her menu depends on her size, and no misreport of it pays either.

    Menus also depend on the kappa of the market (`in_market`; without it the paper's) and on
    `prior_rate`, the mean rate that the buyer expects of owners: twice the rate and twice the money
    is the same market.
    """

    name = "seq-price"
    formula = "in turn: argmax over e of p_i(e) - v_i(e), p_i(eb) <= the money left, p_i learned"
    reference = "flmarket_sim (docs/seq-price.md)"
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "any"}

    def __init__(
        self,
        weights: str = "general",
        size: Literal["certified", "reported"] = "certified",
        prior_rate: float = 1.0,
    ) -> None:
        from flmarket_sim.auctions.learned import weight_files

        if not (np.isfinite(prior_rate) and prior_rate > 0):
            raise InputError(f"prior_rate must be finite and positive, got {prior_rate}")
        self.size, self.prior_rate = size, prior_rate
        self.certified = (
            ("data_size",) if size == "certified" else ()
        )  # parts of a report that the broker has checked
        self.learned = weight_files.load(weights, self.name, size)
        if self.learned.network.size != size:
            raise InputError(
                f"the weights {weights!r} were trained for size = "
                f"{self.learned.network.size!r}, not {size!r}"
            )
        if self.learned.network.secrets:
            raise InputError(
                f"the weights {weights!r} read what owners keep secret: they measure what secrets "
                "cost, and are no mechanism"
            )
        self.network = self.learned.network
        self.kappa = COORDINATE_KAPPA
        self.trained_kappa = self._nearest_trained(self.kappa)

    def in_market(self, error: MarketError) -> SeqPrice:
        """The same mechanism set for the kappa of a market."""
        other = copy(self)
        other.kappa = error.kappa
        other.trained_kappa = self._nearest_trained(error.kappa)
        return other

    def _nearest_trained(self, kappa: float) -> float:
        low, high = kappas_of(self.learned.facts)
        return min(max(kappa, low), high)

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """Draws nothing: the same reports give the same outcome."""
        money = check_budget(bids, budget)
        loss, payment, size = np.zeros(bids.shape), np.zeros(bids.shape), bids.data_size.copy()
        with one_torch_thread():
            for rows, sequence in self._sequences(bids, money, keep_menus=False):
                for target, chosen in (
                    (loss, sequence.chosen_loss),
                    (payment, sequence.chosen_payment),
                    (size, sequence.chosen_size),
                ):
                    np.put_along_axis(target[rows], sequence.order, chosen, axis=1)
        return Outcome(loss, payment, None if self.size == "certified" else size)

    def sequence(self, bids: BidBatch, budget: Floats) -> Sequence:
        """Every offer of a round with its choice, in order."""
        parts = [
            part for _, part in self._sequences(bids, check_budget(bids, budget), keep_menus=True)
        ]
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in ("order", "menu", "chosen_loss", "chosen_payment", "chosen_size")
        }
        return Sequence(privacy_loss=parts[0].privacy_loss, **joined)

    def reading(self, bids: BidBatch) -> Reading:
        """Reports as the valuations that they are read as."""
        return Reading.of(bids)

    def choice(self, reading: Reading, rows: Ints, offer: Offer) -> tuple[Floats, Floats, Floats]:
        """(K,) privacy loss, payment and records that an owner chooses by her report in market
        rows[k]."""
        claim = reading.of_owner(rows, offer.owner)
        if self.size == "reported":
            return favourite_pair(claim, offer.privacy_loss, offer.payment, offer.money)
        return (*favourite_on_curve(claim, offer.privacy_loss, offer.payment), claim.data_size)

    def ask(self, data_size: Floats, budget: Floats) -> Asking:
        """The offers of a round; the caller settles the choices. Sizes (K, n) matter as `size`
        allows."""
        return Asking(self, data_size, budget)

    def _sequences(
        self, bids: BidBatch, money: Floats, keep_menus: bool
    ) -> Iterator[tuple[slice, Sequence]]:
        reading = Reading.of(bids)
        for begin in range(0, len(money), CHUNK):
            rows = slice(begin, begin + CHUNK)
            places = np.arange(begin, min(begin + CHUNK, len(money)))
            asking = self.ask(bids.data_size[rows], money[rows])
            menus, chosen = [], []
            for offer in asking:
                loss, paid, size = self.choice(reading, places, offer)
                asking.settle(loss, paid)
                chosen.append((loss, paid, size))
                if keep_menus:
                    menus.append(offer.payment)
            taken = (np.stack(column, axis=1) for column in zip(*chosen, strict=True))
            menu = np.stack(menus, axis=1) if keep_menus else np.empty((len(places), 0, 0))
            yield rows, Sequence(asking.order, asking.knots, menu, *taken)


class Asking:
    """Offers to the owners of K markets, one owner of each market at a time."""

    def __init__(self, auction: SeqPrice, data_size: Floats, budget: Floats) -> None:
        import torch

        from flmarket_sim.auctions.learned.price_network import PriceNetwork, Standing, offer_order

        network = auction.network
        assert isinstance(network, PriceNetwork)
        markets, self.n = data_size.shape
        self.certified = auction.size == "certified"
        self.order = np.tile(np.arange(self.n), (markets, 1))
        kappa = torch.full((markets,), auction.kappa, dtype=torch.float64)
        if self.certified:
            self.order = offer_order(torch.from_numpy(data_size), kappa).numpy()
        self.budget = budget
        self.knots = np.array(network.knots().numpy())
        sizes = np.take_along_axis(data_size, self.order, axis=1)
        self._standing = Standing(
            network, _single(sizes), _single(budget / auction.prior_rate), auction.kappa
        )
        self._per_record = 1.0 if self.certified else 1.0 / (network.typical_size * self.n)
        self._left = budget.copy()
        self._asked = 0

    def __iter__(self) -> Iterator[Offer]:
        import torch

        while self._asked < self.n:
            with torch.inference_mode():
                share = self._standing.menu(self._asked).double().numpy()
            payment = share * (self.budget * self._per_record)[:, None]
            if self.certified:
                payment = np.minimum(payment, self._left[:, None])
            yield Offer(
                self.order[:, self._asked].copy(), self.knots, payment, self._left.copy()
            )  # no way back to the order

    def settle(self, loss: Floats, payment: Floats) -> None:
        """Records what the owners of the last offer chose, (K,)."""
        import torch

        self._left = np.maximum(self._left - payment, 0.0)
        share = np.divide(payment, self.budget, out=np.zeros_like(payment), where=self.budget > 0)
        with torch.inference_mode():
            self._standing.settle(self._asked, _single(loss), _single(share))
        self._asked += 1


def _single(array: Floats) -> Tensor:
    """As the network computes: in single precision, with its largest number in place of larger
    ones. Its menus are public, so rounding is no harm; money and choices are in double precision.
    """
    import torch

    return torch.from_numpy(np.minimum(array, LARGEST).astype(np.float32))
