"""record-price: one posted price for a record at each privacy loss, the same for everybody.

The price q(e) is computed from the buyer's budget B, the number D of all bidders' records, the
market's kappa and learned curves. No report and no name changes any of these. An owner of d records
is paid d q(e) for the loss e that she likes best, and q is nowhere above B / D, so the payments fit
the budget whatever owners choose. Hence (docs/false-names.md has the proofs):

- no misreport of values or privacy budget pays, alone or in a coalition, even with side payments;
- splitting records over several names changes nothing for an owner whose costs are in proportion to
  records: the prices stay, and payments and costs of the parts add up to those of the whole.

Sizes are certified: who could hide records would make D smaller and the price higher.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.aggregation.market_error import MarketError, coordinate_error
from flmarket_sim.auctions.auction import Floats, Offer, Outcome, check_budget
from flmarket_sim.auctions.learned.favourite import (
    Claim,
    Reading,
    favourite,
    fine_grid,
    payments_between,
)
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.family_table import STEP
from flmarket_sim.owners.stated_valuation import TABLE, StatedValuations
from flmarket_sim.owners.valuation import size_factor
from flmarket_sim.threads import one_torch_thread

CHUNK = 2048  # markets decided at once
LEAST = 1 / 16  # of the largest loss: no smaller loss is for sale
WHOLE = 1 + 1e-12  # rounding of a product must not lose a record
Ints = NDArray[np.int64]


class RecordPrice:
    """A posted price for a record: no lie, no second name and no coalition gains anything.

    `weights` has the price curves by money for a record and by kappa, trained for a prior of owners
    (`flmarket train record-price`). A curve is 0 at 0 and straight between its knots; for sale are
    the losses that divide each piece into 16 equal parts, from 1/16 of the largest loss on. With
    "paper-part" a part of everybody's records is for sale, rounded down to whole records, and
    `Outcome.data_size` says on how many an owner sells; with "paper-all" all of them are. A bid
    that states a table only is read as one that costs the same on a part of the records.
    """

    name = "record-price"
    formula = "argmax over e of d_i q(e) - v_i(e), q(e) <= B / D for everybody, q learned"
    reference = "flmarket_sim (docs/false-names.md)"
    guarantees = {"truthful": "any", "individually_rational": "any", "budget_feasible": "any"}
    certified = ("data_size",)

    def __init__(self, weights: str = "paper-part") -> None:
        from flmarket_sim.auctions.learned import weight_files
        from flmarket_sim.auctions.learned.price_table import PriceTable

        self.learned = weight_files.load(weights, self.name, "certified")
        table = self.learned.network.double()
        if not isinstance(table, PriceTable):
            raise InputError(f"the weights {weights!r} are not a table of prices")
        self.table = table
        self.knots = np.array(self.table.knots().numpy())
        self.error = coordinate_error()
        grid = fine_grid(self.knots)
        self._offered = grid >= LEAST * self.knots[-1]
        self._grid = grid[self._offered]

    def in_market(self, error: MarketError) -> Self:
        """The same auction in a market that counts this error."""
        other = copy.copy(self)
        other.error = error
        return other

    def prices(self, total_records: Floats, budget: Floats) -> tuple[Floats, Floats]:
        """(K,) the part of the records that is for sale, and (K, L) the price of a record that is
        sold, at the knots, in markets of `total_records` (K,) records."""
        import torch

        per_record = budget / total_records
        with torch.inference_mode(), one_torch_thread():
            part, share = self.table(torch.from_numpy(per_record), self.error.kappa)
        price = np.minimum(share.numpy(), 1.0) * (per_record / part.numpy())[:, None]
        return part.numpy(), price

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome:
        """Draws nothing: the same reports give the same outcome."""
        money = check_budget(bids, budget)
        loss, payment, size = np.zeros(bids.shape), np.zeros(bids.shape), bids.data_size.copy()
        reading = self.reading(bids)
        for begin in range(0, len(money), CHUNK):
            rows = np.arange(begin, min(begin + CHUNK, len(money)))
            for place, offer in enumerate(self.ask(bids.data_size[rows], money[rows])):
                sale = self.choice(reading, rows, offer)
                loss[rows, place], payment[rows, place], size[rows, place] = sale
        return Outcome(loss, payment, None if self.table.sells == "all" else size)

    def reading(self, bids: BidBatch) -> Reading:
        """Reports as the valuations that they are read as."""
        return Reading.of(bids)

    def choice(self, reading: Reading, rows: Ints, offer: Offer) -> tuple[Floats, Floats, Floats]:
        """(K,) privacy loss, payment and records that an owner chooses by her report in market
        rows[k]."""
        assert isinstance(offer, PartOffer)
        claim = reading.of_owner(rows, offer.owner)
        payment = payments_between(offer.payment)[:, self._offered]
        loss, paid = favourite(_on_part(claim, offer.records), self._grid, payment)
        some = (offer.records >= 1) & (loss > 0)
        return (
            np.where(some, loss, 0.0),
            np.where(some, paid, 0.0),
            np.where(some, offer.records, claim.data_size),
        )

    def ask(self, data_size: Floats, budget: Floats) -> PostedCurves:
        """The offers of a round, for a market in which owners answer for themselves."""
        return PostedCurves(self.knots, *self.prices(data_size.sum(axis=1), budget), data_size)


@dataclass(frozen=True)
class PartOffer(Offer):
    """An offer for `records` (K,) of the owner's records; without any, nothing is for sale."""

    records: Floats


class PostedCurves:
    """The same price for a record to one owner of each of K markets after the other.

    part (K,) of everybody's records is for sale, prices (K, L) are for a record that is sold, at
    the knots (L,); data_size is (K, n).
    """

    def __init__(self, knots: Floats, part: Floats, prices: Floats, data_size: Floats) -> None:
        self.knots, self._prices = knots, prices
        self._records = np.floor(data_size * (part * WHOLE)[:, None])

    def __iter__(self) -> Iterator[Offer]:
        for column, records in enumerate(self._records.T):
            payment = self._prices * records[:, None]
            owner = np.full(len(payment), column)
            yield PartOffer(owner, self.knots, payment, payment[:, -1].copy(), records)

    def settle(self, loss: Floats, payment: Floats) -> None:
        """Nothing follows from a choice: no other offer depends on it."""


def _on_part(claim: Claim, records: Floats) -> Claim:
    """The same report about some (K,) of the records. A step and a table cost the same for any."""
    family = claim.stated.family
    fixed = (family == TABLE) | (family == STEP) | (records < 1)
    known = np.where(family == TABLE, STEP, family)
    share = np.ones(len(records))
    share[~fixed] = size_factor(known[~fixed], records[~fixed]) / size_factor(
        known[~fixed], claim.data_size[~fixed]
    )
    return replace(claim, stated=StatedValuations(family, claim.stated.scale * share))
