"""The most that each textbook auction pays one owner while all others stay as they are.

Below, r are the unit valuations V / x of the others in ascending order, x their amounts, and S the
sum of what the auction admits before a place. The owner's own V is free, so she takes the place
that pays best.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from flmarket_sim.auctions.all_in import AllIn
from flmarket_sim.auctions.all_in_critical import AllInCritical
from flmarket_sim.auctions.auction import Auction
from flmarket_sim.auctions.fair_query import FairQuery
from flmarket_sim.auctions.pay_as_bid import PayAsBid
from flmarket_sim.auctions.posted_price import PostedPrice
from flmarket_sim.auctions.proportional_share import ProportionalShare
from flmarket_sim.auctions.ranking_value import VALUES, RanksByValue
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.certified.payment_pieces import (
    SLACK,
    Amount,
    PaymentPieces,
    PiecesBounds,
)
from flmarket_sim.strategy.misreports import Floats

Pieces = list[dict[str, float]]
Rule = Callable[[Floats, Floats, float], Pieces]
MOST_PIECES = 10_000
JUST_BELOW = 1 - 1e-12


def bounds_of_rule(auction: Auction, owner: LyingOwner) -> PiecesBounds | None:
    """Bounds over boxes for a textbook auction; None for any other."""
    kind: type = type(auction)
    if kind is PostedPrice:
        pieces = PaymentPieces.of(_posted_price(auction, owner), owner.money)
        return PiecesBounds(pieces, _records_loss, owner, any_loss=True)
    if kind is PayAsBid:
        return PiecesBounds(_pay_as_bid(owner), _records_loss, owner)
    rules: dict[type, Rule] = {
        AllIn: _all_in,
        AllInCritical: _all_in_critical,
        ProportionalShare: _prefix,
    }
    if kind not in rules or not isinstance(auction, RanksByValue) or auction.value not in VALUES:
        return None
    amount = _amount_of(auction)
    x = auction.amounts(owner.bids)[0, owner.others]
    r = owner.bids.full_value[0, owner.others] / x
    order = np.argsort(r, kind="stable")
    ranked = rules[kind](r[order], x[order], owner.money)
    return PiecesBounds(PaymentPieces.of(ranked, owner.money), amount, owner)


def best_in_fair_query(owner: LyingOwner) -> float:
    """The largest true utility that a report can reach in `FairQuery`, exactly.

    With k winners, the loss is max(eb) / (n - k) and the price min(B / k, V of the next). She wins
    with V = 0 and a privacy budget of just the loss, which rules out every larger k. Her own budget
    can only raise the loss, and one record costs least.
    """
    bids, n = owner.bids, owner.bids.shape[1]
    value, budget = bids.full_value[0, owner.others], bids.privacy_budget[0, owner.others]
    order = np.argsort(value, kind="stable")
    value, smallest = value[order], np.minimum.accumulate(budget[order])
    records, best = np.exp(owner.limits()[0][1:]), 0.0
    for k in range(1, n):
        loss = budget.max() / (n - k)
        affordable = k == 1 or value[k - 2] <= owner.money / k * (1 + SLACK)
        within = k == 1 or smallest[k - 2] >= loss * (1 - SLACK)
        if affordable and within and owner.types.privacy_budget >= loss * (1 - SLACK):
            price = min(owner.money / k, value[k - 1])
            best = max(best, float(price - owner.cost(np.array([loss]), records)[0]))
    return best + SLACK * owner.money


def _all_in_critical(r: Floats, x: Floats, money: float) -> Pieces:
    """Her threshold for an amount: the largest of min(r_j, B / (S + x)) along the others' walk."""
    pieces: Pieces = []
    total = 0.0
    for unit, amount in zip(r.tolist(), x.tolist(), strict=True):
        pieces.append({"rate": unit, "rest": total})
        total += amount if unit * (total + amount) <= money else 0.0
    return [*pieces, {"rest": total}]


def _all_in(r: Floats, x: Floats, money: float) -> Pieces:
    """B x / (what others sell + x). Behind her place others are admitted or not by x: as x falls,
    the first of the refused that fits ends a piece."""
    pieces: Pieces = []
    total = 0.0
    for place in range(len(r) + 1):
        high = money / r[place - 1] - total if place and r[place - 1] > 0 else np.inf
        while high > 0 and len(pieces) < MOST_PIECES:
            rest, low = total, 0.0
            for unit, amount in zip(r[place:].tolist(), x[place:].tolist(), strict=True):
                if unit * (rest + high + amount) <= money:
                    rest += amount
                elif unit > 0:
                    low = max(low, money / unit - amount - rest)
            pieces.append({"low": low, "high": high, "rest": rest})
            high = low * JUST_BELOW
        if place < len(r) and r[place] * (total + x[place]) <= money:
            total += x[place]
    return pieces if len(pieces) < MOST_PIECES else [{}]


def _prefix(r: Floats, x: Floats, money: float) -> Pieces:
    """Proportional share: with k other winners she is paid x min(B / (S_k + x), r_k), as long as
    the k-th still fits and the next does not."""
    pieces: Pieces = []
    total = 0.0
    for k in range(len(r) + 1):
        high = money / r[k - 1] - total if k and r[k - 1] > 0 else np.inf
        if high < 0:
            break
        piece = {"high": high, "rest": total}
        if k < len(r):
            low = money / r[k] - total - x[k] if r[k] > 0 else np.inf
            piece |= {"low": max(low, 0.0), "rate": float(r[k])}
            total += x[k]
        pieces.append(piece)
    return pieces


def _pay_as_bid(owner: LyingOwner) -> PaymentPieces:
    """Her V at each place: at most the money that is left there, and at most the next r times x."""
    others, bids = owner.others, owner.bids
    value = bids.full_value[0, others]
    r = value / (bids.data_size * bids.privacy_budget)[0, others]
    order = np.argsort(r, kind="stable")
    pieces: Pieces = []
    total = 0.0
    for unit, asked in zip(r[order].tolist(), value[order].tolist(), strict=True):
        pieces.append({"cap": owner.money - total, "rate": unit})
        total += asked if total + asked <= owner.money * (1 + 1e-12) else 0.0
    return PaymentPieces.of([*pieces, {"cap": owner.money - total}], owner.money)


def _posted_price(auction: Auction, owner: LyingOwner) -> Pieces:
    """One price for a unit of privacy on a record, up to the money that is left when she comes."""
    assert isinstance(auction, PostedPrice)
    money = np.array([owner.money])
    paid = auction.decide(owner.bids, money, np.random.default_rng(0)).payment[0, : owner.index]
    return [{"cap": owner.money - float(paid.sum()), "rate": auction.price}]


def _records_loss(privacy_budget: Floats, data_size: Floats) -> Floats:
    return privacy_budget * data_size


def _amount_of(auction: RanksByValue) -> Amount:
    def amount(privacy_budget: Floats, data_size: Floats) -> Floats:
        bids = BidBatch(np.ones((1, len(privacy_budget), 1)), privacy_budget[None], data_size[None])
        return np.asarray(auction.amounts(bids)[0])

    return amount


__all__ = ["FairQuery", "best_in_fair_query", "bounds_of_rule"]
