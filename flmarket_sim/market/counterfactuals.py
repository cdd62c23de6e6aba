"""What owners with behaviours are offered, and what the truth would have brought each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction, SellsInTurn, check_outcome, records_sold
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog.schema import CounterfactualRecord, DecisionReason
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.cohort_misreports import BehaviourPart
from flmarket_sim.market.judgement import honest_money, rational
from flmarket_sim.market.messages import Offers
from flmarket_sim.market.sale_in_turn import replay_sale
from flmarket_sim.market.sale_value import value_alone
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.randomness import Purpose

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_counterfactuals(
    cohort: Cohort, auction: Auction, bids: BidBatch, money: Floats, offers: Offers
) -> None:
    """Logs a row for each owner with a behaviour whose bid was in the auction.

    The truth replaces her first bid, and her further names disappear. The other bids, their order
    and the auction's random numbers stay. An offer that she would decline is worth nothing to her,
    under her report and under the truth. All money is what honest owners count on (`honest_money`);
    beside owners who cheat there are no counterfactuals.
    """
    assert cohort.misreports is not None
    judgement = cohort.judge(offers)
    sells = (judgement.reason == DecisionReason.ACCEPTED) & (offers.privacy_loss > 0)
    money_for = honest_money(cohort.world, offers.payment)
    utility = np.where(sells, money_for - judgement.value, 0.0)
    entries: list[tuple[int, float, float, float, float]] = []
    if isinstance(auction, SellsInTurn):  # owners answer menus by what they state
        bids = cohort.reports.at(offers.slots).batch()
    for part in cohort.misreports.parts:
        for position, person in enumerate(part.view.owners.tolist()):
            rows = np.flatnonzero(np.isin(offers.slots, part.slots[part.of == position]))
            if len(rows):
                honest, kept, row = _honest_bids(bids, part, position, rows)
                slots = offers.slots[kept]
                loss, payment, records = _sale(cohort, auction, honest, money, slots, row)
                truthful = _utility(cohort, person, loss, payment, records)
                entries.append((person, float(utility[rows].sum()), truthful, loss, payment))
    if entries:
        people, reported, by_truth, losses, payments = map(np.array, zip(*entries, strict=True))
        record = CounterfactualRecord(
            utility=reported,
            truthful_utility=by_truth,
            truthful_privacy_loss=losses,
            truthful_payment=payments,
        )
        cohort.write(record, sender=people)


def _honest_bids(
    bids: BidBatch, part: BehaviourPart, position: int, rows: Ints
) -> tuple[BidBatch, Ints, int]:
    """The bids with one owner's truth, which of the old rows are in them, and her new row.

    `rows` are those of her names among the old bids.
    """
    kept = np.setdiff1d(np.arange(bids.shape[1]), rows[1:])
    row = int(np.searchsorted(kept, rows[0]))
    values, budget, size = (
        column[:, kept].copy() for column in (bids.values, bids.privacy_budget, bids.data_size)
    )
    view = part.view
    values[0, row], budget[0, row] = view.values[position], view.privacy_budget[position]
    size[0, row] = view.data_size[position]
    stated = bids.stated_valuations().at((slice(None), kept))
    hers = view.truthful.stated_valuations().at((0, view.slots[position]))
    return BidBatch(values, budget, size, stated.replaced((0, row), hers)), kept, row


def _sale(
    cohort: Cohort, auction: Auction, bids: BidBatch, money: Floats, slots: Ints, row: int
) -> tuple[float, float, float]:
    """Privacy loss, payment and records of a row, with the round's random numbers."""
    if isinstance(auction, SellsInTurn):
        return replay_sale(cohort, auction, bids, money, slots, row)
    rng = cohort.world.streams.generator(Purpose.AUCTION, cohort.buyer, cohort.round)
    with plugin_errors("auction", auction.name):
        outcome = check_outcome(auction.name, auction.decide(bids, money, rng), bids, money)
    loss, payment = float(outcome.privacy_loss[0, row]), float(outcome.payment[0, row])
    return loss, payment, float(records_sold(outcome, bids)[0, row])


def _utility(cohort: Cohort, person: int, loss: float, payment: float, records: float) -> float:
    """What an offer is worth to a person: nothing where she declines it."""
    counted_on = float(honest_money(cohort.world, np.array(payment)))
    utility = counted_on - value_alone(cohort.world.population, person, records, loss)
    return max(utility, 0.0) if rational(cohort.world) else utility
