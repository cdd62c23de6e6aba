"""Menus of auctions that ask in turn, as they travel, and what may be taken from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import TOLERANCE, Auction, Offer, certified_parts
from flmarket_sim.auctions.learned.record_price import PartOffer
from flmarket_sim.auctions.privacy_markets.menus_in_turn import ListedOffer
from flmarket_sim.flower.messages import CURVE, PART, POINTS, Choice, OfferRequest


def menu(offer: Offer) -> dict[str, Any]:
    """The fields of an `OfferRequest` about a menu for one owner."""
    fields: dict[str, Any] = {
        "privacy_losses": offer.privacy_loss.tolist(),
        "payments": offer.payment[0].tolist(),
        "money": float(offer.money[0]),
        "form": CURVE,
    }
    if isinstance(offer, ListedOffer):
        return fields | {"form": POINTS}
    if isinstance(offer, PartOffer):
        return fields | {"form": PART, "records": float(offer.records[0])}
    return fields


def offer_of(request: OfferRequest) -> Offer:
    """The menu as the auction's own rule reads it, for its one owner."""
    losses, payments = np.array(request.privacy_losses), np.array(request.payments)[None]
    menu = (np.zeros(1, np.int64), losses, payments, np.array([request.money]))
    if request.form == POINTS:
        return ListedOffer(*menu, losses[None])
    if request.form == PART:
        return PartOffer(*menu, np.array([request.records or 0.0]))
    return Offer(*menu)


def is_on_menu(auction: Auction, offer: Offer, choice: Choice) -> bool:
    """Whether an owner asks for no more than her menu pays for this loss on these records."""
    losses, payments = offer.privacy_loss, offer.payment[0]
    if isinstance(offer, ListedOffer):
        there = np.isclose(losses, choice.privacy_loss, rtol=TOLERANCE, atol=0.0)
        price = float(payments[there].max(initial=0.0))
    else:
        price = float(np.interp(choice.privacy_loss, [0.0, *losses], [0.0, *payments]))
        if choice.privacy_loss > losses[-1] * (1 + TOLERANCE):
            return False
    if isinstance(offer, PartOffer) and choice.records < offer.records[0]:
        return False
    if "data_size" not in certified_parts(auction):
        price *= choice.records
    return bool(choice.payment <= min(price, float(offer.money[0])) * (1 + TOLERANCE))
