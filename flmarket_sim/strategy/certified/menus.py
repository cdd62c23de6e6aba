"""Exact gains against auctions that sell in turn: the best point of a menu that no report moves.

The broker's side of `SellsInTurn` has three parts. `ask` gets sizes and budgets and nothing else of
any report; `choice` takes a point of an offer by one report; `settle` tells what was chosen. So the
offer to an owner can depend on the choices before her and on sizes, never on her own values or
privacy budget. What is left to check for the owner at hand is that her size does not move her offer
(unless sizes are certified), and that `decide` gives her a point of that offer, or nothing, under
other reports as well. Then the most that any report can get her is the best point by her true
valuation, and the menu has finitely many.
"""

from __future__ import annotations

import numpy as np

from flmarket_sim.auctions.auction import Offer, SellsInTurn, records_sold
from flmarket_sim.auctions.learned.favourite import fine_grid, first_for_sale, payments_between
from flmarket_sim.auctions.learned.record_price import PartOffer
from flmarket_sim.auctions.privacy_markets.menus_in_turn import ListedOffer
from flmarket_sim.errors import ContractError
from flmarket_sim.strategy.certified.lying_owner import LyingOwner
from flmarket_sim.strategy.misreports import Floats, Misreports

TRIALS = 16  # reports of each owner that must get a point of her menu
SIZES = 12  # numbers of records under which her menu must be the same
SAME = 1e-9  # relative: losses and records that differ by less are the same
PAYMENT = 2e-6  # of the buyer's money: menus are in single precision, so the number of markets that
# are decided together moves their last bits


def best_on_menu(auction: SellsInTurn, owner: LyingOwner) -> float:
    """The largest true utility that any report of the owner can reach, "nothing" included."""
    offer = offer_to(auction, owner, owner.bids.data_size)
    _check_sizes(auction, owner, offer)
    loss, payment, records = menu_points(owner, offer)
    _check_trials(auction, owner, loss, payment, records)
    utility = payment - owner.cost(loss, records)
    return float(max(0.0, utility.max(initial=0.0)))


def offer_to(auction: SellsInTurn, owner: LyingOwner, data_size: Floats) -> Offer:
    """What she is offered while everybody before her chooses by the true report."""
    market = np.zeros(1, np.int64)
    asking = auction.ask(data_size, np.array([owner.money]))
    reading = auction.reading(owner.bids)
    for offer in asking:
        if int(offer.owner[0]) == owner.index:
            return offer
        loss, payment, _ = auction.choice(reading, market, offer)
        asking.settle(loss, payment)
    raise ContractError(f"auction {auction.name!r} makes no offer to owner {owner.index}")


def menu_points(owner: LyingOwner, offer: Offer) -> tuple[Floats, Floats, Floats]:
    """Every point of an offer that she can deliver: privacy loss, payment, records."""
    size, budget = float(owner.types.data_size), float(owner.types.privacy_budget)
    if isinstance(offer, ListedOffer):
        some = offer.losses[0] > 0
        loss, payment = offer.losses[0, some], offer.payment[0, some]
        records = np.full(len(loss), size)
    elif owner.size_certified:
        grid = fine_grid(offer.privacy_loss)
        first = first_for_sale(grid)
        loss, payment = grid[first:], payments_between(offer.payment)[0, first:]
        wanted = float(offer.records[0]) if isinstance(offer, PartOffer) else size
        records = np.full(len(loss), wanted)
    else:
        every = np.arange(1.0, np.floor(size) + 1.0)
        loss, records = (grid.ravel() for grid in np.meshgrid(offer.privacy_loss, every))
        payment = (every[:, None] * offer.payment[0]).ravel()
    within = (records >= 1) & (loss <= budget) & (payment <= offer.money[0] * (1 + SAME))
    return loss[within], payment[within], records[within]


def _check_sizes(auction: SellsInTurn, owner: LyingOwner, offer: Offer) -> None:
    """Refuses an auction whose offer moves with her reported size."""
    if owner.size_certified:
        return
    size = float(owner.types.data_size)
    for records in np.unique(np.round(np.geomspace(1.0, size, SIZES))):
        data_size = owner.bids.data_size.copy()
        data_size[0, owner.index] = records
        other = offer_to(auction, owner, data_size)
        same = other.payment.shape == offer.payment.shape and np.array_equal(
            np.concatenate([other.privacy_loss, other.payment[0], other.money]),
            np.concatenate([offer.privacy_loss, offer.payment[0], offer.money]),
        )
        if not same:
            raise ContractError(
                f"auction {auction.name!r} says that it sells in turn, but the offer to owner "
                f"{owner.index} moves when she reports {records:.0f} of {size:.0f} records"
            )


def _check_trials(
    auction: SellsInTurn, owner: LyingOwner, loss: Floats, payment: Floats, records: Floats
) -> None:
    """Refuses an auction that gives her, by some report, what her offer does not have."""
    reports = _trials(owner)
    count = len(reports.privacy_budget)
    bids = reports.within(owner.bids.take(np.zeros(count, np.int64)), np.full(count, owner.index))
    outcome = auction.decide(bids, np.full(count, owner.money), np.random.default_rng(0))
    sold = outcome.privacy_loss[:, owner.index]
    paid, size = outcome.payment[:, owner.index], records_sold(outcome, bids)[:, owner.index]
    for t in range(count):
        near = (
            (np.abs(loss - sold[t]) <= SAME)
            & (np.abs(payment - paid[t]) <= PAYMENT * owner.money)
            & (np.abs(records - size[t]) <= SAME * size[t])
        )
        paid_for_nothing = sold[t] <= 0 and paid[t] > PAYMENT * owner.money
        if paid_for_nothing or (sold[t] > 0 and not near.any()):
            raise ContractError(
                f"auction {auction.name!r} says that it sells in turn, but a report of owner "
                f"{owner.index} gets her a loss of {sold[t]:.6g} for {paid[t]:.6g}, which is not "
                "on the menu that she is offered"
            )


def _trials(owner: LyingOwner) -> Misreports:
    """The truth and random tables, with budgets and records of all sizes."""
    rng = np.random.default_rng(owner.index)
    low, high = owner.limits()
    truth = Misreports.of(owner.bids, np.array([owner.index]))
    budget, size = np.exp(rng.uniform(low, high, (TRIALS, 2))).T
    budget[: TRIALS // 4] = owner.types.privacy_budget
    records = np.clip(np.floor(size), np.round(np.exp(low[1])), owner.types.data_size)
    top = owner.money * np.exp(rng.uniform(-12.0, 1.0, (TRIALS, 1)))
    values = np.sort(top * rng.random((TRIALS, owner.bids.levels)), axis=1)
    return Misreports.stack([truth, Misreports(values, budget, records)])
