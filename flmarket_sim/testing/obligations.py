"""The obligations of every auction: shapes, seeds, draws, batches, `expected`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import Outcome, check_outcome, claims_of
from flmarket_sim.errors import ContractError, FlmarketError
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.testing.auction_under_test import DRAWS, AuctionUnderTest
from flmarket_sim.testing.property_check import (
    SAME,
    CaseJudgement,
    Check,
    MeanOutcome,
    SearchResult,
    number,
    sold,
    view,
    who,
    worst,
)
from flmarket_sim.testing.trial_markets import CLASSES, Floats, Markets, columns, edges
from flmarket_sim.testing.violating_market import ViolatingMarket, scaled

KEYS = ("truthful", "individually_rational", "budget_feasible", "monotone", "anonymous")
CONFIDENCE = 40.0  # log of how often a right `expected` is called wrong: about e^-40 a number
EXTREMES = (0.0, 1e3)  # factors of an owner's values under which draws must stay the same


def declarations(auction: Any) -> str:
    """What is wrong with `guarantees` and `claims`; empty if nothing."""
    allowed = (*CLASSES, "none")
    declared = {"guarantees": getattr(auction, "guarantees", None), "claims": claims_of(auction)}
    for attribute, properties in declared.items():
        if not isinstance(properties, dict):
            return f"`{attribute}` must be a dict of properties, got {properties!r}"
        for key, value in properties.items():
            if key not in KEYS:
                return f"`{attribute}` has {key!r}; known are {', '.join(KEYS)}"
            if value not in allowed:
                return (
                    f"`{attribute}[{key!r}]` is {value!r}; it must be one of {', '.join(allowed)}"
                )
    return ""


def _complaint(subject: AuctionUnderTest, bids: BidBatch, money: Floats) -> str:
    """What is wrong with one call; empty if nothing. The buyer's budget has a check of its own."""
    before = [np.array(part) for part in (bids.values, bids.privacy_budget, bids.data_size, money)]
    try:
        outcome: Any = subject.decide(bids, money)
        if not (hasattr(outcome, "privacy_loss") and hasattr(outcome, "payment")):
            return f"decide must return an Outcome, got {type(outcome).__name__}"
        check_outcome(subject.name, outcome, bids, np.full(len(money), np.inf))
    except ContractError as error:
        return str(error)
    except FlmarketError as error:
        return f"decide refuses: {error}"
    after = (bids.values, bids.privacy_budget, bids.data_size, money)
    if any(not np.array_equal(old, new) for old, new in zip(before, after, strict=True)):
        return "decide changes the bids or the budget that it was given"
    return ""


def _find_contract(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    wrong = declarations(subject.auction)
    if wrong:
        return SearchResult(np.ones(1), [], wrong)
    for sample in (markets, *edges(markets)):
        message = _complaint(subject, sample.bids(), sample.money)
        if message:
            cases = [ViolatingMarket.of(sample, k) for k in range(sample.shape[0])]
            return SearchResult(np.ones(1), cases, message)
    return SearchResult(np.zeros(1))


def _judge_contract(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    message = _complaint(subject, case.bids(), case.budget)
    return CaseJudgement(float(bool(message)), (), message)


def _same(
    one: Outcome, other: Outcome, bids: BidBatch, money: Floats, tolerance: float = 0.0
) -> Floats:
    """(K, n) distance of two outcomes relative to privacy budgets and money; 0 within tolerance."""
    loss = np.abs(one.privacy_loss - other.privacy_loss) / bids.privacy_budget
    payment = np.abs(one.payment - other.payment) / np.maximum(money, 1e-300)[:, None]
    apart = np.maximum(loss, payment)
    return np.where(apart > tolerance, apart, 0.0)


def _view(label: str, outcome: Outcome) -> MeanOutcome:
    """The first market of an outcome."""
    return MeanOutcome(label, outcome.privacy_loss[0], outcome.payment[0])


def _find_deterministic(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    bids, money = markets.bids(), markets.money
    first = subject.fresh().decide(bids, money)
    later = [subject.decide(bids, money) for _ in range(3)]
    subject.decide(bids, 0.5 * money, draw=1)
    later.append(subject.decide(bids, money))
    apart = np.max([_same(first, other, bids, money) for other in later], axis=0)
    message = (
        "the same bids, budget and seed gave another outcome at another call" if apart.any() else ""
    )
    return SearchResult(
        apart, worst(apart, markets, lambda k, i: ViolatingMarket.of(markets, k, owner=i)), message
    )


def _judge_deterministic(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    bids, money = case.bids(), case.budget
    one, again = subject.fresh(), subject.fresh()
    first, outcomes = one.decide(bids, money), [one.decide(bids, money), again.decide(bids, money)]
    outcomes += [again.decide(bids, money) for _ in range(6)]
    apart = [_same(first, other, bids, money) for other in outcomes]
    other = outcomes[int(np.argmax([part.max() for part in apart]))]
    here = np.max(apart, axis=0)[0]
    views = (_view("first", first), _view("again", other))
    i = int(here.argmax())
    story = (
        f"The same bids, budget and seed give two outcomes: {who(i).lower()} {sold(views[0], i)} "
        f"at the first call, and {sold(views[1], i)} at another."
    )
    return CaseJudgement(float(here.max()), views, story)


def _state(subject: AuctionUnderTest, bids: BidBatch, money: Floats) -> Any:
    """The state of the random numbers after a decision."""
    rng = np.random.default_rng(subject.seed)
    subject.auction.decide(bids, money, rng)
    return rng.bit_generator.state


def _find_draws(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    bids, money = markets.bids(), markets.money
    before = _state(subject, bids, money)
    for i, factor in ((i, factor) for i in range(markets.shape[1]) for factor in EXTREMES):
        values = bids.values.copy()
        values[:, i] *= factor
        if _state(subject, BidBatch(values, bids.privacy_budget, bids.data_size), money) != before:
            misreport = scaled(factor, markets.levels)
            cases = [
                ViolatingMarket.of(markets, k, owner=i, misreport=misreport)
                for k in range(min(20, markets.shape[0]))
            ]
            return SearchResult(
                np.ones(1), cases, "the number of random numbers drawn depends on the bids"
            )
    rolled = np.roll(np.arange(markets.shape[0]), 1)
    if _state(subject, bids.take(rolled), money[rolled]) != before:
        return SearchResult(
            np.ones(1), [], "the number of random numbers drawn depends on the bids"
        )
    return SearchResult(np.zeros(1))


def _judge_draws(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    differs = _state(subject, case.bids(), case.budget) != _state(
        subject, case.misreported_bids(), case.budget
    )
    assert case.owner is not None and case.misreport is not None
    story = (
        f"From the same seed the auction draws other random numbers when {who(case.owner).lower()} "
        f"asks {number(case.misreport.factor[-1])} times what she truly would: "
        "then no two reports can be compared fairly."
    )
    return CaseJudgement(float(differs), (), story)


def _find_batch(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    """Replaces half of the markets; decides some markets of deterministic auctions alone."""
    bids, money = markets.bids(), markets.money
    count = markets.shape[0]
    whole = subject.decide(bids, money)
    apart = np.zeros(markets.shape)
    for parity in (0, 1):
        rows = np.arange(count)
        moved = rows % 2 == parity
        rows[moved] = np.roll(rows[moved], 1)
        part = _same(whole, subject.decide(bids.take(rows), money[rows]), bids, money, SAME)
        apart = np.maximum(apart, np.where(moved[:, None], 0.0, part))
    for k in range(0 if subject.random else min(count, 8)):
        rows = np.array([k])
        alone = subject.decide(bids.take(rows), money[rows])
        one = Outcome(whole.privacy_loss[rows], whole.payment[rows])
        apart[k] = np.maximum(apart[k], _same(one, alone, bids.take(rows), money[rows], SAME)[0])

    def beside(k: int, i: int) -> ViolatingMarket:
        j = (k + 1) % count
        return ViolatingMarket.of(
            markets,
            k,
            owner=i,
            beside=(markets.truth.take(slice(j, j + 1)), float(markets.money[j])),
        )

    message = (
        "the outcome of a market depends on the markets that are decided with it"
        if apart.any()
        else ""
    )
    return SearchResult(apart, worst(apart, markets, beside), message)


def _judge_batch(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    assert case.beside is not None
    other, money = case.beside
    both = type(case.truth)(
        *(np.concatenate(pair) for pair in zip(columns(case.truth), columns(other), strict=True))
    )
    bids = both.bids(case.levels)
    one = subject.decide(bids.take([0, 0]), np.array([case.money, case.money]))
    two = subject.decide(bids, np.array([case.money, money]))
    apart = _same(one, two, bids.take([0, 0]), np.array([case.money] * 2), SAME)[0]
    views = (_view("alone", one), _view("beside", two))
    i = int(apart.argmax())
    story = (
        f"{who(i)} {sold(views[0], i)}. When another market with a budget of {number(money)} "
        f"is decided in the same call, she {sold(views[1], i)}."
    )
    return CaseJudgement(float(apart.max()), views, story)


def _find_expected(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    """Judges a few markets one by one: the preview has too few draws to judge a lottery."""
    if not subject.states_chances:
        return SearchResult(np.zeros(1))
    cases = [ViolatingMarket.of(markets, k) for k in range(min(6, markets.shape[0]))]
    violation = np.array([_judge_expected(subject, case).violation for case in cases])
    bad = [cases[k] for k in np.argsort(-violation) if violation[k] > 0]
    return SearchResult(violation, bad, "`expected` is not what is drawn" if bad else "")


def _judge_expected(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    """Compares means over many draws with `expected`, within Bernstein's bound for its chances.

    A payment may differ from draw to draw at one level; `expected` then has its mean.
    """
    bids = case.bids()
    chance, payment = (part[0] for part in subject.chances(bids, case.budget))
    if chance.shape != payment.shape or chance.shape[0] != case.n or chance.shape[1] < 2:
        return CaseJudgement(
            1.0,
            (),
            f"`expected` must give two arrays (K, n, M + 1), "
            f"got {chance.shape}, {payment.shape} of n, M + 1",
        )
    if (chance < -1e-6).any() or (np.abs(chance.sum(axis=1) - 1) > 1e-4).any():
        return CaseJudgement(
            1.0, (), f"`expected` must give chances that sum to 1, got {chance.tolist()}"
        )
    _, loss, paid, _ = subject.realised(bids, case.money)
    draws = len(loss) if subject.random else DRAWS
    share = bids.privacy_budget[0][:, None] * (np.arange(chance.shape[1]) / (chance.shape[1] - 1))
    apart, claims = np.zeros(case.n), []
    for claimed, drawn, scale in (
        (share, loss, bids.privacy_budget[0]),
        (payment, paid, np.full(case.n, max(case.money, 1e-300))),
    ):
        mean = (chance * claimed).sum(axis=1)
        stated = (chance * (claimed - mean[:, None]) ** 2).sum(axis=1)
        variance = np.maximum(stated, drawn.var(axis=0) if claimed is payment else 0.0)
        noise = np.sqrt(2 * CONFIDENCE * variance / draws)
        if subject.random:
            noise += CONFIDENCE * claimed.max(axis=1) / (3 * draws)
        excess = (np.abs(drawn.mean(axis=0) - mean) - noise) / scale
        apart = np.maximum(apart, np.where(excess > SAME, excess, 0.0))
        claims.append(mean)
    views = (
        MeanOutcome("expected", claims[0], claims[1]),
        view("drawn", (loss.mean(axis=0), paid.mean(axis=0))),
    )
    i = int(apart.argmax())
    story = (
        f"`expected` says that {who(i).lower()} {sold(views[0], i)} on average; "
        f"over {len(loss):,} draws she {sold(views[1], i)}."
    )
    return CaseJudgement(float(apart.max()), views, story)


def obligations() -> Iterator[Check]:
    """The checks in their order: an auction that fails the first is not tried further."""
    yield Check(
        "contract", "shapes, types, signs, owners' budgets", "", _find_contract, _judge_contract
    )
    yield Check(
        "deterministic",
        "the same seed gives the same outcome",
        "",
        _find_deterministic,
        _judge_deterministic,
    )
    yield Check("draws", "no bid changes the numbers drawn", "", _find_draws, _judge_draws)
    yield Check("batch", "no market changes another", "", _find_batch, _judge_batch)
    yield Check(
        "expected", "`expected` is the mean of the draws", "", _find_expected, _judge_expected
    )


__all__ = ["declarations", "obligations"]
