"""Promises of auctions: budgets, individual rationality, monotonicity, anonymity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from flmarket_sim.auctions.auction import TOLERANCE, records_sold
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.testing.auction_under_test import CERTAIN, AuctionUnderTest
from flmarket_sim.testing.property_check import (
    SAME,
    CaseJudgement,
    Check,
    SearchResult,
    number,
    sold,
    view,
    who,
    worst,
)
from flmarket_sim.testing.trial_markets import Floats, Markets, edges
from flmarket_sim.testing.truthfulness import truthful
from flmarket_sim.testing.violating_market import ViolatingMarket, scaled, some, tied

SCALES = (0.0, 0.2, 0.7, 0.95, 1.05, 1.4, 3.0, 20.0)  # of an owner's table of values
# What an auction may sort by.
EVERYTHING = ("unit", "full_value", "privacy_budget", "data_size", "record")


def _market_alone(markets: Markets, k: int, owner: int) -> ViolatingMarket:
    return ViolatingMarket.of(markets, k)


def _market_of_owner(markets: Markets, k: int, owner: int) -> ViolatingMarket:
    return ViolatingMarket.of(markets, k, owner=owner)


def _find_budget(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    violations, cases = [], []
    for sample in (markets, *edges(markets)):
        spent = np.max(
            [
                outcome.payment.sum(axis=1)
                for outcome in subject.outcomes(sample.bids(), sample.money)
            ],
            axis=0,
        )
        excess = _excess(spent, sample.money)
        violations.append(excess)
        cases += worst(excess[:, None], sample, partial(_market_alone, sample))
    return SearchResult(np.concatenate(violations), cases)


def _excess(spent: Floats, money: Floats) -> Floats:
    """Spending above the budget, as a share of it."""
    excess = (spent - money) / np.maximum(money, 1e-9)
    return np.where(excess > TOLERANCE, excess, 0.0)


def _judge_budget(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    _, loss, payment, _ = subject.realised(case.bids(), case.money)
    spent = payment.sum(axis=1)
    draw = int(spent.argmax())
    story = f"The buyer has {number(case.money)} and pays {number(spent[draw])}."
    violation = float(_excess(spent[draw : draw + 1], case.budget)[0])
    return CaseJudgement(violation, (view("outcome", (loss[draw], payment[draw])),), story)


def _find_rational(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    violations, cases = [], []
    for sample in (markets, *edges(markets)[:3]):
        deficit = np.zeros(sample.shape)
        bids = sample.bids()
        for outcome in subject.outcomes(bids, sample.money):
            value = sample.truth.value(outcome.privacy_loss, records_sold(outcome, bids))
            deficit = np.maximum(deficit, _deficit(value, outcome.payment))
        if sample is markets:
            violations.append(deficit)
        cases += worst(deficit, sample, partial(_market_of_owner, sample))
    return SearchResult(violations[0], cases)


def _deficit(value: Floats, payment: Floats) -> Floats:
    """The part of the value of a sale that its payment does not cover."""
    missing = (value - payment) / np.maximum(value, 1e-300)
    return np.where(missing > TOLERANCE, missing, 0.0)


def _judge_rational(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    """Judges every draw of a lottery: owners accept or decline what was drawn."""
    assert case.owner is not None
    i = case.owner
    _, loss, payment, size = subject.realised(case.bids(), case.money)
    value = case.truth.value(loss, size)
    deficit = _deficit(value, payment)[:, i]
    draw = int(deficit.argmax())
    shown = view("outcome", (loss[draw], payment[draw]))
    story = f"{who(i)} {sold(shown, i)}, which costs her {number(value[draw, i])}."
    return CaseJudgement(float(deficit[draw]), (shown,), story)


def _find_monotone(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    bids, money = markets.bids(), markets.money
    truthful = subject.means(bids, money)[0]
    apart = np.zeros((len(SCALES), *markets.shape))
    for place, factor in enumerate(SCALES):
        for i in range(markets.shape[1]):
            values = bids.values.copy()
            values[:, i] *= factor
            loss = subject.means(BidBatch(values, bids.privacy_budget, bids.data_size), money)[0][
                :, i
            ]
            more = (
                (loss - truthful[:, i]) * (1.0 if factor > 1 else -1.0) / bids.privacy_budget[:, i]
            )
            apart[place, :, i] = np.where(more > SAME, more, 0.0)
    which = apart.argmax(axis=0)
    violation = apart.max(axis=0)

    def case(k: int, i: int) -> ViolatingMarket:
        return ViolatingMarket.of(
            markets, k, owner=i, misreport=scaled(SCALES[which[k, i]], markets.levels)
        )

    return SearchResult(violation, worst(violation, markets, case))


def _judge_monotone(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    assert case.owner is not None and case.misreport is not None
    i, factor = case.owner, case.misreport.factor[-1]
    truthful, misreported = (
        subject.all_lots(case.bids(), case.money),
        subject.all_lots(case.misreported_bids(), case.money),
    )
    views = (view("truth", truthful.means()), view("told", misreported.means()))
    sign = 1.0 if factor > 1 else -1.0
    more = sign * (views[1].loss[i] - views[0].loss[i]) / case.truth.privacy_budget[0, i]
    holds = more <= SAME or (
        subject.sampled
        and not subject.above_noise(sign * (misreported.privacy_loss - truthful.privacy_loss)[:, i])
    )
    story = (
        f"{who(i)} {sold(views[0], i)}. "
        f"If she asks {number(factor)} times as much she {sold(views[1], i)}."
    )
    return CaseJudgement(0.0 if holds else float(more), views, story)


def _find_anonymous(subject: AuctionUnderTest, markets: Markets) -> SearchResult:
    bids, money = markets.bids(), markets.money
    n = markets.shape[1]
    loss, payment = subject.means(bids, money)
    free = ~tied(bids, *EVERYTHING)
    orders = [np.arange(n)[::-1], np.roll(np.arange(n), 1)]
    apart = np.zeros((len(orders), markets.shape[0]))
    for place, order in enumerate(orders):
        moved = BidBatch(
            bids.values[:, order], bids.privacy_budget[:, order], bids.data_size[:, order]
        )
        other_loss, other_payment = subject.means(moved, money)
        far = np.maximum(
            np.abs(other_loss - loss[:, order]) / bids.privacy_budget[:, order],
            np.abs(other_payment - payment[:, order]) / money[:, None],
        ).max(axis=1)
        apart[place] = np.where(free & (far > SAME), far, 0.0)
    which, violation = apart.argmax(axis=0), apart.max(axis=0)
    cases = worst(
        violation[:, None],
        markets,
        lambda k, _: ViolatingMarket.of(markets, k, order=tuple(int(i) for i in orders[which[k]])),
    )
    return SearchResult(violation, cases)


def _judge_anonymous(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    assert case.order is not None
    if tied(case.bids(), *EVERYTHING)[0]:
        return CaseJudgement(0.0)
    order = list(case.order)
    back = np.argsort(order)
    one = subject.all_lots(case.bids(), case.money)
    other = subject.all_lots(some(case.truth, order).bids(case.levels), case.money)
    loss_back, payment_back = (part[back] for part in other.means())
    views = (view("listed", one.means()), view("moved", (loss_back, payment_back)))
    loss = np.abs(views[1].loss - views[0].loss)
    payment = np.abs(views[1].payment - views[0].payment)
    if subject.sampled:
        draws = len(one.chance)
        loss = np.where(
            loss
            > CERTAIN
            * np.sqrt((one.privacy_loss.var(0) + other.privacy_loss.var(0)[back]) / draws),
            loss,
            0.0,
        )
        payment = np.where(
            payment > CERTAIN * np.sqrt((one.payment.var(0) + other.payment.var(0)[back]) / draws),
            payment,
            0.0,
        )
    apart = np.maximum(loss / case.truth.privacy_budget[0], payment / max(case.money, 1e-300))
    i = int(apart.argmax())
    listed = ", ".join(str(j + 1) for j in order)
    story = (
        f"{who(i)} {sold(views[0], i)}. "
        f"With the same owners in the order {listed} she {sold(views[1], i)}."
    )
    return CaseJudgement(float(apart[i]) if apart[i] > SAME else 0.0, views, story)


def promises(effort: str) -> Iterator[Check]:
    """The checks for each class of owners."""
    yield Check(
        "budget_feasible",
        "no draw costs the buyer more than she has",
        "of the budget",
        _find_budget,
        _judge_budget,
    )
    yield Check(
        "individually_rational",
        "no draw pays less than what it costs",
        "of cost",
        _find_rational,
        _judge_rational,
    )
    yield truthful(effort)
    yield Check(
        "monotone",
        "who asks more does not sell more",
        "of her privacy budget",
        _find_monotone,
        _judge_monotone,
    )
    yield Check(
        "anonymous",
        "the order of the owners does not matter",
        "",
        _find_anonymous,
        _judge_anonymous,
    )
