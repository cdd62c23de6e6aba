"""The contract of auctions: `decide(bids, budget, rng) -> Outcome`, for K markets at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.aggregation.market_error import MarketError
from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.owners.bids import BidBatch

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # relative: rounding, not rules
TRUTHFUL_FOR_STEPS = {
    "truthful": "single-minded",
    "individually_rational": "any",
    "budget_feasible": "any",
}


@dataclass(frozen=True)
class Outcome:
    """What an auction decides in K markets of n owners, each column (K, n).

    privacy_loss  what each owner sells, at most her reported privacy budget
    payment       what she gets for it
    data_size     the records that she sells it on; None means all the records that she reported
    """

    privacy_loss: Floats
    payment: Floats
    data_size: Floats | None = None

    def __repr__(self) -> str:
        shape, sold = np.shape(self.privacy_loss), np.asarray(self.privacy_loss) > 0
        paid = np.sum(self.payment)
        return f"<Outcome of shape {shape}: {sold.sum():,} sales for {paid:,.6g} in all>"


class Auction(Protocol):
    """A mechanism. Its options are constructor arguments; `decide` keeps no state between calls.

    `guarantees` states which properties hold for which owners: {"truthful": C,
    "individually_rational": C, "budget_feasible": C}, where C is "any" (every valuation),
    "single-minded" (step valuations) or "none". "monotone" and "anonymous" may be added.
    `decide` draws the same random numbers for every batch of the same shape.

    More attributes are optional. `claims` has the keys of `guarantees` and states what the
    mechanism's publication claims (see `claims_of`); `flmarket audit` tests both. `certified`
    names the parts of a report that the broker has verified (see `certified_parts`). `formula` is
    its rule in one line and `reference` its publication; docs/mechanisms.md shows both.

    A lottery with `decide_draws` is played faster (see `DecidesDraws`). A mechanism that decides
    by the error which its market counts has the method `in_market` (see `KnowsTheError`).
    Everything that runs an auction in a market calls `auction_in` first.
    """

    name: str
    guarantees: dict[str, str]

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome: ...


@runtime_checkable
class KnowsTheError(Auction, Protocol):
    """An auction that decides by the error of its market: what noise costs, how large a bias is."""

    def in_market(self, error: MarketError) -> Auction:
        """The same mechanism set for a market that counts this error; this one stays as it is."""
        ...


def auction_in(auction: Auction, error: MarketError) -> Auction:
    """The auction set for a market that counts this error, or itself if the error does not
    matter to it."""
    return auction.in_market(error) if isinstance(auction, KnowsTheError) else auction


@runtime_checkable
class StatesChances(Auction, Protocol):
    """An auction that states chances and payments (K, n, M + 1) of all levels, "nothing" first.

    A payment is the mean given its level, if it differs from draw to draw.
    """

    def expected(self, bids: BidBatch, budget: Floats) -> tuple[Floats, Floats]: ...


@runtime_checkable
class DecidesDraws(Auction, Protocol):
    """An auction that decides several draws in one pass: the outcomes of `decide` with each of the
    generators. A class that replaces `decide` alone is played draw by draw."""

    def decide_draws(
        self, bids: BidBatch, budget: Floats, rngs: Sequence[np.random.Generator]
    ) -> Sequence[Outcome]: ...


@runtime_checkable
class Differentiable(Auction, Protocol):
    """An auction with `expected` on torch tensors, smooth in the reported values (K, n, M)."""

    def relaxed(
        self, values: Tensor, privacy_budget: Tensor, data_size: Tensor, budget: Tensor
    ) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class Offer:
    """What the next owner of each of K markets is offered.

    owner         (K,) her column
    privacy_loss  (L,) knots of the price curve (certified sizes), or losses on offer (reported)
    payment       (K, L) what they pay: for the losses that divide a piece into 16 equal parts it is
                  straight between knots, from 0 at 0 on (certified); or for one record (reported)
    money         (K,) what is left of the budgets: no sale is paid more
    """

    owner: NDArray[np.int64]
    privacy_loss: Floats
    payment: Floats
    money: Floats


class OffersInTurn(Protocol):
    """The offers of one sale in turn: iterate over them, and `settle` each one before the next."""

    def __iter__(self) -> Iterator[Offer]: ...

    def settle(self, loss: Floats, payment: Floats) -> None: ...


@runtime_checkable
class SellsInTurn(Auction, Protocol):
    """An auction that offers a menu to one owner after the other: `ask` gives the offers, `reading`
    interprets the reports, and `choice` is what an owner takes: privacy loss, payment, records."""

    def ask(self, data_size: Floats, budget: Floats) -> OffersInTurn: ...

    def reading(self, bids: BidBatch) -> Any: ...

    def choice(
        self, reading: Any, rows: NDArray[np.int64], offer: Offer
    ) -> tuple[Floats, Floats, Floats]: ...


def claims_of(auction: Auction) -> dict[str, str]:
    """What the auction's publication claims, with the keys of `guarantees`; {} without `claims`."""
    claims: dict[str, str] = getattr(auction, "claims", {})
    return claims


def certified_parts(auction: Auction) -> tuple[str, ...]:
    """The parts of a report ("data_size") that the broker has verified; empty without `certified`.

    Owners cannot misreport these parts, and no guarantee covers such misreports.
    """
    parts: tuple[str, ...] = getattr(auction, "certified", ())
    return parts


def records_sold(outcome: Outcome, bids: BidBatch) -> Floats:
    """(K, n) records that each owner sells on: all reported ones, unless the outcome has fewer."""
    size = getattr(outcome, "data_size", None)  # a plug-in's own outcome class may lack it
    return np.asarray(bids.data_size if size is None else size)


def sales_and_rest(outcome: Outcome, data_size: Floats) -> tuple[Floats, Floats]:
    """Privacy losses and sizes as the error of a purchase counts them.

    They are (K, n) where all records (K, n) are sold on. Otherwise there is one more column: all
    records that were not bought, as those of an owner who sells nothing.
    """
    sold = getattr(outcome, "data_size", None)  # a plug-in's own outcome class may lack it
    if sold is None:
        return outcome.privacy_loss, data_size
    rest = np.maximum((data_size - sold).sum(axis=1, keepdims=True), 1e-9)  # rules refuse a 0
    loss = np.pad(outcome.privacy_loss, ((0, 0), (0, 1)))
    return loss, np.concatenate([sold, rest], axis=1)


def check_budget(bids: BidBatch, budget: ArrayLike) -> Floats:
    """The budgets as a float array (K,), refused unless finite and at least 0."""
    try:
        array = np.asarray(budget, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"budget must be an array of numbers: {error}") from None
    if array.shape != (bids.shape[0],):
        raise InputError(
            f"budget must have shape ({bids.shape[0]},), one for each market, got {array.shape}"
        )
    right = np.isfinite(array) & (array >= 0)
    if not right.all():
        k = int(np.argmin(right))
        raise InputError(
            f"budget[{k}] (market {k}) is {array[k]}; a budget must be finite and at least 0"
        )
    return array


def check_outcome(name: str, outcome: Any, bids: BidBatch, budget: Floats) -> Outcome:
    """Refuses an outcome that breaks the contract: shapes, types, signs, and budgets."""
    loss, payment = np.asarray(outcome.privacy_loss), np.asarray(outcome.payment)
    for what, array in (("privacy_loss", loss), ("payment", payment)):
        if array.shape != bids.shape or array.dtype != np.float64:
            raise ContractError(
                f"auction {name!r}: {what} must be float64 of shape {bids.shape}, "
                f"got {array.dtype} {array.shape}"
            )
        if not (np.isfinite(array) & (array >= 0)).all():
            raise ContractError(
                f"auction {name!r}: {what} must be finite and at least 0, got {array.tolist()}"
            )
    if (loss > bids.privacy_budget * (1 + TOLERANCE)).any():
        raise ContractError(f"auction {name!r} sells more privacy than an owner's reported budget")
    spent = payment.sum(axis=1)
    if (spent > budget * (1 + TOLERANCE)).any():
        k = int(np.argmax(spent - budget))
        raise ContractError(
            f"auction {name!r} spends {spent[k]:.6g} of a budget of {budget[k]:.6g}"
        )
    size = records_sold(outcome, bids)
    if size.shape != bids.shape or not ((size >= 1) & (size <= bids.data_size)).all():
        raise ContractError(
            f"auction {name!r}: data_size must be at least 1 and at most what was reported, "
            f"of shape {bids.shape}"
        )
    return Outcome(loss, payment, None if size is bids.data_size else size)
