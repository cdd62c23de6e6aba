"""Which error a learned auction was trained for, and whether it meets another one.

One number, kappa, describes how noisy a market is (docs/theory.md, section 7). What is worth buying
at kappa = 8 is not what is worth buying at kappa = 5,000, so a learned auction may buy badly in a
market that it was not trained for.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from flmarket_sim.aggregation.market_error import COORDINATE_KAPPA, MarketError
from flmarket_sim.auctions.auction import Auction, auction_in

ALIKE = 2.0  # kappas that differ by at most this factor are of one regime


@runtime_checkable
class Trained(Protocol):
    """An auction that was trained for one regime, or for many: then it is set for its market
    (`in_market`), and `trained_kappa` is the nearest one."""

    trained_kappa: float


def kappa_of(facts: dict[str, object]) -> float:
    """The kappa in the metadata of weights. Without it they were trained for the paper's error."""
    return float(str(facts.get("kappa", COORDINATE_KAPPA)))


def regime_note(auction: Auction, error: MarketError) -> str | None:
    """A sentence for people if the market has another regime than the auction was trained for."""
    auction = auction_in(auction, error)
    if not isinstance(auction, Trained):
        return None
    trained, here = auction.trained_kappa, error.kappa
    if trained / ALIKE <= here <= trained * ALIKE:
        return None
    paper = " (the paper's reading of the error)" if trained == COORDINATE_KAPPA else ""
    stays = "It stays truthful; w" if auction.guarantees.get("truthful") == "any" else "W"
    return (
        f"{auction.name} was trained for kappa = {trained:.4g}{paper}; this market has kappa = "
        f"{here:.4g}. {stays}hat it buys may be far from the best. Retrain it with `flmarket train "
        f"{auction.name} --scenario SCENARIO --out FILE`"
    )
