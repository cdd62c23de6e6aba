"""After an auction with liars: what the truth would have earned them, what they learn, and what they give each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.auctions.auction import Auction, SellsInTurn, check_outcome, records_sold
from flmarket_sim.errors import plugin_errors
from flmarket_sim.eventlog import BROKER
from flmarket_sim.eventlog.schema import CounterfactualRecord, DecisionReason, TransferRecord
from flmarket_sim.market.cohort_misreports import CohortMisreports, Spoken
from flmarket_sim.market.messages import Offers
from flmarket_sim.market.owner import Cohort
from flmarket_sim.market.sale_in_turn import replayed
from flmarket_sim.owners.bids import BidBatch
from flmarket_sim.owners.valuation import STEP
from flmarket_sim.randomness import Purpose
from flmarket_sim.strategy.behaviours.behaviour import Feedback, check_transfers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def log_counterfactuals(
    cohort: Cohort, auction: Auction, bids: BidBatch, money: Floats, offers: Offers
) -> None:
    """One row for each owner with a behaviour whose bid was in the auction: its utility, and that of the truth.

    The truth takes the place of her (first) bid, her further names go, and all else stays: the other bids, their order, and
    the auction's random numbers. An offer she would decline is worth nothing to her, under her report and under the truth.
    """
    assert cohort.lies is not None
    judged = cohort.judge(offers)
    sells = (judged.reason == DecisionReason.ACCEPTED) & (
        offers.privacy_loss > 0
    )  # in turn, whoever answered late sold nothing
    got = np.where(sells, offers.payment - judged.value, 0.0)
    found: list[tuple[float, ...]] = []
    for one in cohort.lies.spoken:
        for position, person in enumerate(one.view.owners.tolist()):
            rows = np.flatnonzero(np.isin(offers.slots, one.slots[one.of == position]))
            if len(rows):
                found.append(
                    (
                        person,
                        float(got[rows].sum()),
                        *_by_truth(cohort, auction, bids, money, offers, one, position, rows),
                    )
                )
    if found:
        people, utility, truthful, loss, payment = map(np.array, zip(*found, strict=True))
        cohort.world.log.write(
            CounterfactualRecord(
                utility=utility,
                truthful_utility=truthful,
                truthful_privacy_loss=loss,
                truthful_payment=payment,
            ),
            time=cohort.world.env.now,
            round=cohort.round,
            buyer=cohort.buyer,
            sender=people,
            receiver=BROKER,
        )


def _by_truth(
    cohort: Cohort,
    auction: Auction,
    bids: BidBatch,
    money: Floats,
    offers: Offers,
    one: Spoken,
    position: int,
    rows: Ints,
) -> tuple[float, float, float]:
    """Utility, privacy loss and payment of an owner, had she told the truth."""
    kept = np.setdiff1d(np.arange(bids.shape[1]), rows[1:])
    values, budget, size = (
        part[:, kept].copy() for part in (bids.values, bids.privacy_budget, bids.data_size)
    )
    row = int(np.searchsorted(kept, rows[0]))
    values[0, row], budget[0, row] = one.view.values[position], one.view.privacy_budget[position]
    size[0, row] = one.view.data_size[position]
    world, person = cohort.world, one.view.owners[position : position + 1]
    honest = BidBatch(values, budget, size)
    if isinstance(auction, SellsInTurn):
        loss, payment, sold = replayed(cohort, auction, honest, money, offers.slots[kept], row)
    else:
        rng = world.streams.generator(Purpose.AUCTION, cohort.buyer, cohort.round)
        with plugin_errors("auction", auction.name):
            outcome = check_outcome(auction.name, auction.decide(honest, money, rng), honest, money)
        loss, payment = float(outcome.privacy_loss[0, row]), float(outcome.payment[0, row])
        sold = float(records_sold(outcome, honest)[0, row])
    value = float(world.population.value(person, np.array([loss]))[0])
    if world.population.family[person[0]] != STEP:
        value *= sold / one.view.data_size[position]  # in proportion to the records that are bought
    utility = payment - value
    if world.scenario.owners.accept == "rational":
        utility = max(utility, 0.0)
    return utility, loss, payment


def conclude(cohort: Cohort, lies: CohortMisreports, offers: Offers, delivered: Ints) -> None:
    """Tells behaviours what their owners sold and got, once the round's gradients are in; books what they give each other.

    `delivered` are rows of the offers.
    """
    world, slots = cohort.world, offers.slots[delivered]
    sold, paid, worth = np.zeros((3, len(cohort.owners)))
    sold[slots], paid[slots] = offers.privacy_loss[delivered], offers.payment[delivered]
    worth[slots] = cohort.true_value(slots, sold[slots])
    assert world.cast is not None
    for one in lies.spoken:
        behaviour: Any = world.cast.behaviours[one.place]
        learns, shares = hasattr(behaviour, "learn"), hasattr(behaviour, "share")
        if not learns and not shares:
            continue
        k = len(one.view.owners)
        loss = np.zeros(k)
        np.maximum.at(loss, one.of, sold[one.slots])
        payment, value = (
            np.bincount(one.of, part[one.slots], k).astype(float) for part in (paid, worth)
        )
        feedback = Feedback(one.view, loss, payment, payment - value)
        with plugin_errors("behaviour", behaviour.name):
            if learns:
                behaviour.learn(feedback)
            if shares and (transfers := behaviour.share(feedback)) is not None:
                moved = check_transfers(behaviour.name, transfers, one.view)
                world.ledger.transfer(*moved)
                world.log.write(
                    TransferRecord(amount=moved.amount),
                    time=world.env.now,
                    round=cohort.round,
                    buyer=cohort.buyer,
                    sender=moved.payer,
                    receiver=moved.payee,
                )
