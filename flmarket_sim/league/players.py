"""Who plays: the mechanisms that a user names, or every built-in one that needs no file."""

from __future__ import annotations

from collections.abc import Sequence

from flmarket_sim.auctions import named, names
from flmarket_sim.auctions.auction import certified_parts
from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.errors import InputError
from flmarket_sim.plugins.registry import BUILT_IN, auctions

ALL = "all"
CERTIFIED, REPORTED = "certified", "reported"  # how a mechanism knows the records of owners


def players(asked: Sequence[str]) -> list[str]:
    """The mechanisms that were asked for, each once; "all" stands for `everybody`."""
    listed = [name for one in asked for name in (everybody() if one == ALL else [one])]
    return list(dict.fromkeys(listed))


def everybody() -> list[str]:
    """The built-in auctions that can be made without options, in the order of `flmarket list`."""
    return [name for name in names() if name in BUILT_IN["auction"] and _plays(name)]


def _plays(name: str) -> bool:
    try:
        named(name)
    except InputError:
        return False
    return True


def records(name: str) -> str:
    """Whether the mechanism takes the broker's word for records, or that of owners.

    A mechanism whose weights are not at hand is asked by its class.
    """
    try:
        asked = named(name)
    except InputError:
        asked = auctions.get(AuctionName.parse(name).name)
    return CERTIFIED if "data_size" in certified_parts(asked) else REPORTED
