"""What an auction is to everybody else: `decide(bids, budget, rng) -> Outcome`, K markets at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flmarket_sim.errors import ContractError, InputError
from flmarket_sim.owners.bids import BidBatch

Floats = NDArray[np.float64]
TOLERANCE = 1e-9  # relative: rounding, not rules


@dataclass(frozen=True)
class Outcome:
    """privacy_loss (K, n): what each owner sells, at most her reported budget; payment (K, n): what she gets for it.

    data_size (K, n): records she sells it on, where a mechanism buys fewer than were reported; None: all of them.
    """

    privacy_loss: Floats
    payment: Floats
    data_size: Floats | None = None


class Auction(Protocol):
    """A mechanism. Options are constructor arguments; `decide` keeps no state from call to call.

    `guarantees` says what holds and for which owners: {"truthful": C, "individually_rational": C, "budget_feasible": C},
    where C is "any" (every valuation), "single-minded" (step valuations) or "none"; "monotone" and "anonymous" may be added.
    An optional `claims`, with the same keys, is what its publication says. `flmarket audit` holds a mechanism to both.
    `certified`, where a mechanism has it, names the parts of a report ("data_size") that the broker has checked: nobody can lie about them,
    and no guarantee speaks of such lies.
    `decide` draws the same random numbers for the same shape whatever the bids are.
    """

    name: str
    guarantees: dict[str, str]

    def decide(self, bids: BidBatch, budget: Floats, rng: np.random.Generator) -> Outcome: ...


def records_sold(outcome: Outcome, bids: BidBatch) -> Floats:
    """(K, n) records that each owner sells on: those she reported, unless the mechanism buys fewer."""
    size = getattr(outcome, "data_size", None)
    return np.asarray(bids.data_size if size is None else size)


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
    """Refuses an outcome that breaks the contract: shape, type, sign, privacy budgets, buyer's budget."""
    loss, payment = np.asarray(outcome.privacy_loss), np.asarray(outcome.payment)
    for what, array in (("privacy_loss", loss), ("payment", payment)):
        if array.shape != bids.shape or array.dtype != np.float64:
            raise ContractError(
                f"auction {name!r}: {what} must be float64 of shape {bids.shape}, got {array.dtype} {array.shape}"
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
            f"auction {name!r}: data_size must be at least 1 and at most what was reported, of shape {bids.shape}"
        )
    return Outcome(loss, payment, None if size is bids.data_size else size)
