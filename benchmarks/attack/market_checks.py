"""What holds in every market, whatever its numbers: the contract, budgets, no sale at a loss.

A violation counts from 1e-9 on, relative to the numbers that are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Outcome, certified_parts, records_sold
from flmarket_sim.errors import InputError
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import FAMILIES, STEP

from .extreme_markets import ExtremeMarkets, Floats

TOLERANCE = 1e-9
LEAST = 1e-300  # below it a number has fewer digits than the tolerance needs
REFUSED = "refused"
SCALES = (0.0, 1e-6, 0.5, 0.99, 1 - 1e-7, 1 + 1e-7, 1.01, 2.0, 10.0, 1e6)  # of a liar's rate


class Violation(NamedTuple):
    """What is wrong in market k. A refusal by name is one only in name: it is counted apart."""

    market: int
    check: str
    detail: str


def decided(auction: Any, bids: BidBatch, money: Floats) -> Outcome:
    with np.errstate(all="ignore"):
        return auction.decide(bids, money, np.random.default_rng(0))


def check_auction(auction: Any, markets: ExtremeMarkets) -> Iterator[Violation]:
    """Every violation of a batch. If the auction raises, its markets are played one by one."""
    try:
        bids = markets.bids()
        outcome = decided(auction, bids, markets.money)
    except Exception as error:
        if len(markets) > 1:
            for k in range(len(markets)):
                alone = check_auction(auction, markets.take([k]))
                yield from (violation._replace(market=k) for violation in alone)
        elif isinstance(error, InputError):
            yield Violation(0, REFUSED, str(error))
        else:
            yield Violation(0, "an exception", f"{type(error).__name__}: {error}")
        return
    yield from _outcome(auction, markets, bids, outcome)


def _outcome(
    auction: Any, markets: ExtremeMarkets, bids: BidBatch, outcome: Outcome
) -> Iterator[Violation]:
    loss, payment = np.asarray(outcome.privacy_loss), np.asarray(outcome.payment)
    wrong = ~(np.isfinite(loss) & np.isfinite(payment) & (loss >= 0) & (payment >= 0))
    yield from _each("not a number", wrong, loss, payment)
    payment = np.where(wrong.any(axis=1, keepdims=True), 0.0, payment)
    loss = np.where(wrong.any(axis=1, keepdims=True), 0.0, loss)
    yield from _each("beyond a privacy budget", loss > bids.privacy_budget * (1 + TOLERANCE), loss)
    with np.errstate(all="ignore"):
        spent = payment.sum(axis=1)
        over = spent > np.maximum(markets.money * (1 + TOLERANCE), markets.money + LEAST)
    yield from _each("beyond the budget", over, spent, markets.money)
    promised = auction.guarantees
    if promised["individually_rational"] == "any":
        size = records_sold(outcome, bids)
        cost = _cost(markets, loss, size)
        short = payment < cost * (1 - TOLERANCE) - LEAST
        yield from _each("a sale at a loss", short & (loss > 0), payment, cost)


def _cost(markets: ExtremeMarkets, loss: Floats, size: Floats) -> Floats:
    """What a sale is worth; of tables that nearly tell, as little as they let it seem."""
    with np.errstate(all="ignore"):
        cost = markets.truth.value(loss, size)
        if markets.near is not None:
            cost = cost * (1 - np.abs(markets.near - 1).max(axis=2) * 4 - TOLERANCE)
    return np.asarray(cost)


def check_truthful(
    auction: Any, markets: ExtremeMarkets, rng: np.random.Generator
) -> Iterator[Violation]:
    """Random misreports of one owner a market, where the auction declares that none pays."""
    promised = auction.guarantees["truthful"]
    if promised == "single-minded":
        markets = markets.take((markets.truth.family == STEP).all(axis=1))
    if promised == "none" or not len(markets) or markets.near is not None:
        return
    owner = rng.integers(markets.truth.shape[1], size=len(markets))
    lie = _lie(markets, owner, rng, "data_size" in certified_parts(auction))
    try:
        honest, lying = markets.bids(), lie.bids(markets.levels)
        outcomes = [decided(auction, bids, markets.money) for bids in (honest, lying)]
    except Exception:  # an exception of a truthful market is found by `check_auction`
        return
    at = np.arange(len(markets)), owner
    types = markets.truth.types.at(at)
    with np.errstate(all="ignore"):
        earned, cost = zip(
            *(
                _earned(types, outcome, bids, at)
                for outcome, bids in zip(outcomes, (honest, lying), strict=True)
            ),
            strict=True,
        )
        gain = earned[1] - earned[0]
        scale = np.maximum(
            np.maximum(*cost), np.maximum(outcomes[0].payment[at], outcomes[1].payment[at])
        )
    pays = gain > TOLERANCE * scale + LEAST
    for k in np.flatnonzero(pays):
        told = f"owner {owner[k]} gains {gain[k]:.6g} (truth {earned[0][k]:.6g}) by reporting "
        yield Violation(
            int(k),
            "a misreport that pays",
            told + ExtremeMarkets(lie.take([k]), markets.money[[k]], markets.levels).code(),
        )


def _earned(types: Any, outcome: Outcome, bids: BidBatch, at: Any) -> tuple[Floats, Floats]:
    """The utility of an owner a market, and what her sale truly costs her."""
    loss, size = outcome.privacy_loss[at], records_sold(outcome, bids)[at]
    return types.utility(loss, outcome.payment[at], size), types.value(loss, size)


def _lie(
    markets: ExtremeMarkets, owner: NDArray[np.int64], rng: np.random.Generator, certified: bool
) -> Profiles:
    """Each liar reports as another type would: another rate, family, budget, or fewer records."""
    family, rate, budget, size = (np.array(column) for column in markets.truth.types)
    at, count = (np.arange(len(markets)), owner), len(markets)
    scaled = rate[at] * rng.choice(SCALES, count)
    other = rng.integers(len(FAMILIES), size=count)
    rate[at] = np.maximum(scaled, 5e-324)
    family[at] = np.where(rng.random(count) < 0.3, other, family[at])
    budget[at] *= np.where(rng.random(count) < 0.3, rng.uniform(0.001, 1.0, count), 1.0)
    if not certified:
        fewer = np.maximum(np.floor(size[at] * rng.uniform(0.0, 1.0, count)), 1.0)
        size[at] = np.where(rng.random(count) < 0.3, fewer, size[at])
    return Profiles(family, rate, np.maximum(budget, 5e-324), size)


def check_rule(rule: Any, loss: Floats, size: Floats) -> Iterator[Violation]:
    """Weights are numbers, sum to one, and are zero for owners who sell nothing."""
    try:
        with np.errstate(all="ignore"):
            weights = np.asarray(rule.weights(loss, size))
    except Exception as error:
        if len(loss) > 1:
            for k in range(len(loss)):
                alone = check_rule(rule, loss[[k]], size[[k]])
                yield from (violation._replace(market=k) for violation in alone)
        else:
            check = REFUSED if isinstance(error, InputError) else "an exception"
            yield Violation(0, check, f"{type(error).__name__}: {error}")
        return
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    yield from _each("not a number", wrong, weights)
    right = ~wrong.any(axis=1)
    sums = weights.sum(axis=1)
    yield from _each("weights do not sum to one", right & (np.abs(sums - 1) > TOLERANCE), sums)
    sold = (right & (loss > 0).any(axis=1))[:, None]
    yield from _each("a weight for nothing", sold & (loss == 0) & (weights != 0), weights)


def _each(check: str, wrong: NDArray[np.bool_], *shown: Floats) -> Iterator[Violation]:
    """One violation a market, with the numbers of its first wrong owner."""
    markets = wrong if wrong.ndim == 1 else wrong.any(axis=1)
    for k in np.flatnonzero(markets):
        place = (k,) if wrong.ndim == 1 else (k, int(wrong[k].argmax()))
        numbers = ", ".join(repr(float(array[place])) for array in shown)
        where = "" if len(place) == 1 else f"owner {place[1]}: "
        yield Violation(int(k), check, where + numbers)


def fewest_owners(owners: int, shows: Callable[[list[int]], bool]) -> list[int]:
    """As few owners as still show a violation, by leaving out one after the other."""
    kept = list(range(owners))
    for owner in range(owners):
        fewer = [other for other in kept if other != owner]
        if fewer and shows(fewer):
            kept = fewer
    return kept
