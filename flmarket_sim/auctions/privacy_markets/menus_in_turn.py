"""Menus that no report can change, served in the order of the bids while the money lasts.

An owner gets the offer of her menu that is best for her by her report: the valuation that the
report states, or else its table, rounded up (learned/favourite.py). In a market that runs she
answers for herself (`SellsInTurn`). "Nothing for nothing" is on every menu, and offers that the
money left does not cover are taken off. So whatever the menus are, the sale is truthful and
individually rational for owners of any valuation, and it keeps the budget. The menus themselves may
depend on public facts only: the budget, and sizes that the broker has certified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Floats, Offer, Outcome, check_budget
from flmarket_sim.auctions.learned.favourite import ON_A_LEVEL, Claim, Reading
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.family_table import STEP
from flmarket_sim.owners.stated_valuation import TABLE
from flmarket_sim.owners.valuation import unit_value

Ints = NDArray[np.int64]


class SellsFromMenus(ABC):
    """An auction that is nothing but menus for all owners; `menus` is all that differs."""

    @abstractmethod
    def menus(self, data_size: Floats, budget: Floats) -> tuple[Floats, Floats]:
        """Losses, of a shape that broadcasts to (K, n, L), and payments (K, n, L) for them in
        markets of certified sizes (K, n); a payment that is not finite is no offer."""

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        budget = check_budget(bids, budget)
        sold, paid = np.zeros(bids.shape), np.zeros(bids.shape)
        reading, rows = self.reading(bids), np.arange(len(budget))
        asking = self.ask(bids.data_size, budget)
        for i, offer in enumerate(asking):
            sold[:, i], paid[:, i], _ = self.choice(reading, rows, offer)
            asking.settle(sold[:, i], paid[:, i])
        return Outcome(sold, paid)

    def ask(self, data_size: Floats, budget: Floats) -> ListedMenus:
        """The offers of a round, for a market in which owners answer for themselves."""
        loss, payment = self.menus(data_size, budget)
        return ListedMenus(np.broadcast_to(loss, payment.shape), payment, budget)

    def reading(self, bids: BidBatch) -> Reading:
        """Reports as the valuations that they are read as."""
        return Reading.of(bids)

    def choice(self, reading: Reading, rows: Ints, offer: Offer) -> tuple[Floats, Floats, Floats]:
        """(K,) privacy loss, payment and records that an owner chooses by her report in market
        rows[k]. Of equally good offers she takes the first."""
        assert isinstance(offer, ListedOffer)
        claim, loss, payment = reading.of_owner(rows, offer.owner), offer.losses, offer.payment
        cost = _cost(claim, loss)
        good = (loss > 0) & (loss <= claim.privacy_budget[:, None]) & (payment >= cost)
        best = np.where(good, payment - np.where(good, cost, 0.0), -1.0).argmax(axis=1)
        at = np.arange(len(rows)), best
        takes = good[at]
        return np.where(takes, loss[at], 0.0), np.where(takes, payment[at], 0.0), claim.data_size


@dataclass(frozen=True)
class ListedOffer(Offer):
    """An offer of single points: `losses` (K, L) for `payment` (K, L) and nothing between them.

    A point of no loss for no money stands where there is no offer. `privacy_loss` has the losses of
    the first market, which is all there is in a market that runs.
    """

    losses: Floats


class ListedMenus:
    """One menu after the other, in the order of the bids, without what can no longer be paid."""

    def __init__(self, loss: Floats, payment: Floats, budget: Floats) -> None:
        self._loss, self._payment, self._left = loss, payment, np.array(budget, np.float64)

    def __iter__(self) -> Iterator[Offer]:
        markets, n, _ = self._payment.shape
        for i in range(n):
            loss, payment, left = self._loss[:, i], self._payment[:, i], self._left.copy()
            some = (loss > 0) & np.isfinite(payment) & (payment <= left[:, None])
            losses, payment = np.where(some, loss, 0.0), np.where(some, payment, 0.0)
            yield ListedOffer(np.full(markets, i), losses[:1].ravel(), payment, left, losses)

    def settle(self, loss: Floats, payment: Floats) -> None:
        self._left = np.maximum(self._left - payment, 0.0)


def _cost(claim: Claim, loss: Floats) -> Floats:
    """(K, L) what one report a market says that losses cost; infinite beyond any number."""
    family, levels = claim.stated.family[:, None], claim.values.shape[1]
    known = np.broadcast_to(np.where(family == TABLE, STEP, family), loss.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        stated = claim.stated.scale[:, None] * unit_value(known, loss)
        place = np.ceil(loss / claim.privacy_budget[:, None] * levels - ON_A_LEVEL)
    level = np.clip(place, 1, levels).astype(np.int64) - 1
    return np.where(family == TABLE, np.take_along_axis(claim.values, level, axis=1), stated)
