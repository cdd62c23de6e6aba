"""Truthful: no owner gains by a misreport while all others tell the truth."""

from __future__ import annotations

import numpy as np

from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.strategy.probe import Probe, probe
from flmarket_sim.testing.auction_under_test import AuctionUnderTest
from flmarket_sim.testing.property_check import (
    CaseJudgement,
    Check,
    SearchResult,
    number,
    sold,
    view,
    who,
    worst,
)
from flmarket_sim.testing.trial_markets import LEVELS, Markets
from flmarket_sim.testing.violating_market import RelativeMisreport, ViolatingMarket

ROUNDING = 1e-9  # of the buyer's money
NOTABLE = 1e-6  # of cost: below it a gain is not worth a word


def _find(subject: AuctionUnderTest, markets: Markets, effort: str) -> SearchResult:
    best = probe(
        subject.auction,
        markets.truth,
        markets.money,
        seed=subject.seed,
        effort=effort,
        levels=markets.levels,
    )
    worth = (best.gain > ROUNDING * markets.money[:, None]) & (best.relative_gain > NOTABLE)
    violation = np.where(worth, best.relative_gain, 0.0)
    return SearchResult(
        violation,
        worst(
            violation,
            markets,
            lambda k, i: ViolatingMarket.of(
                markets, k, owner=i, misreport=_relative_misreport(best, k, i)
            ),
        ),
    )


def _relative_misreport(best: Probe, k: int, i: int) -> RelativeMisreport:
    """The probe's report as factors of the truth."""
    truth = best.truth
    budget, size = best.privacy_budget[k, i], best.data_size[k, i]
    honest = truth.types.at((k, i)).table(best.values.shape[2], budget, size)
    factor = tuple(float(f) for f in best.values[k, i] / honest)
    return RelativeMisreport(
        factor, float(budget / truth.privacy_budget[k, i]), float(size / truth.data_size[k, i])
    )


def _judge(subject: AuctionUnderTest, case: ViolatingMarket) -> CaseJudgement:
    assert case.owner is not None and case.misreport is not None
    i, truth = case.owner, case.truth
    reports = case.misreported_bids()
    honest_lots, lying_lots = (
        subject.all_lots(case.bids(), case.money),
        subject.all_lots(reports, case.money),
    )

    owner = truth.types.at((0, i))
    cost = owner.value(honest_lots.privacy_loss[:, i], honest_lots.data_size[:, i])
    honest = honest_lots.payment[:, i] - cost
    lying = lying_lots.payment[:, i] - owner.value(
        lying_lots.privacy_loss[:, i], lying_lots.data_size[:, i]
    )
    weights = honest_lots.chance[:, i], lying_lots.chance[:, i]
    earned, earned_by_misreport = float(honest @ weights[0]), float(lying @ weights[1])
    least = float(owner.value(owner.privacy_budget / LEVELS))
    scale = max(float(cost @ weights[0]), least)
    gain = earned_by_misreport - earned
    pays = gain > ROUNDING * case.money and gain > NOTABLE * scale
    if pays and subject.sampled:
        pays = subject.above_noise(lying - honest)
    views = (view("truth", honest_lots.means()), view("lie", lying_lots.means()))
    story = (
        f"{who(i)} truthfully {sold(views[0], i)} and earns {number(earned)}. "
        f"If she {_in_words(case, reports)}, "
        f"she {sold(views[1], i)} and earns {number(earned_by_misreport)}: "
        f"a gain of {number(gain / scale)} times her cost."
    )
    return CaseJudgement(gain / scale if pays else 0.0, views, story)


def _in_words(case: ViolatingMarket, reports: BidBatch) -> str:
    """The misreport in words."""
    assert case.owner is not None and case.misreport is not None
    i, truth, misreport = case.owner, case.truth, case.misreport
    changes = []
    if reports.privacy_budget[0, i] < truth.privacy_budget[0, i] * (1 - 1e-9):
        changes.append(
            f"offers a privacy budget of {number(reports.privacy_budget[0, i])}, "
            f"not {number(truth.privacy_budget[0, i])}"
        )
    if reports.data_size[0, i] < truth.data_size[0, i]:
        changes.append(
            f"offers {reports.data_size[0, i]:g} of her {truth.data_size[0, i]:g} records"
        )
    asks = ", ".join(number(value) for value in reports.values[0, i])
    if len(set(misreport.factor)) > 1:
        changes.append(f"asks {asks} for the {case.levels} levels of it")
    elif misreport.factor[-1] == 0.0:
        changes.append("asks nothing for it")
    elif misreport.factor[-1] != 1.0:
        changes.append(
            f"asks {number(reports.values[0, i, -1])} for it, "
            f"{number(misreport.factor[-1])} times what it is worth to her"
        )
    return " and ".join(changes or ["says the same"])


def truthful(effort: str) -> Check:
    return Check(
        "truthful",
        "no misreport of one owner pays",
        "of cost",
        lambda subject, markets: _find(subject, markets, effort),
        _judge,
    )
