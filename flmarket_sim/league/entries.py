"""Entries: one small file for each mechanism that has played the card.

An entry is a JSON file with a seal: the auction, the version and hash of the card, its row over the
whole card, and its main numbers in each market. A pull request adds one, and `check_entry` compares
what it says of one market with what the mechanism decides there now, and its row over the card with
its own markets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.errors import InputError
from flmarket_sim.league import measures
from flmarket_sim.league.card import Size, card
from flmarket_sim.league.league_rows import WHOLE, market_row, whole_row
from flmarket_sim.league.places import in_order
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.sealed_files import read_sealed, sealed
from flmarket_sim.storage.untrusted_files import check_shape
from flmarket_sim.studies.study import Row

REPEATED_IN = "iid"  # the market of the card whose decisions are repeated
AGAIN = "Enter the mechanism again: `flmarket league enter NAME`"
REPEATED = ("over_floor", "invalid", "spent", "surplus", "underpaid")
KEPT = (*REPEATED, "over_floor_low", "over_floor_high", "gain", "why_not")
FOLLOWING = (  # what the numbers of the markets say of the card
    *KEPT[:-1], "most_invalid", "gain_least", "gain_most", "played", "markets",
)  # fmt: skip
NOT_KEPT = ("auction", "market", "card", "size", "place", "records")  # known without the row
CLOSE = 2e-5  # relative: numbers have six digits, and libraries differ in the last bits


class EntryFile(BaseModel):
    """The types of what an entry holds."""

    auction: str
    mechanism: str
    card: int
    card_sha256: str
    size: Size
    whole: dict[str, float | str]
    markets: dict[str, dict[str, float | str]]


def entry_of(auction: str, rows: Sequence[Row], size: Size) -> dict[str, Any]:
    """The entry of a mechanism, from its rows of the league."""
    played = card()
    own = [row for row in rows if row["auction"] in (auction, label_of(auction))]
    return {
        "auction": label_of(auction),
        "mechanism": AuctionName.parse(auction)._replace(given_label="").label,
        "card": played.version,
        "card_sha256": played.sha256,
        "size": size,
        "whole": _short(next(row for row in own if row["market"] == WHOLE)),
        "markets": {
            row["market"]: _short({key: row.get(key) for key in KEPT})
            for row in own
            if row["market"] != WHOLE
        },
    }


def label_of(auction: str) -> str:
    """The name of an entry: weights and files of classes are named without their folders."""
    return AuctionName.parse(auction).label


def file_name(auction: str) -> str:
    """The name of the file of an entry."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in label_of(auction)) + ".json"


def _short(row: Row) -> Row:
    """A row with six digits of each number, and without what is empty or known without it."""
    kept = {key: value for key, value in row.items() if key not in NOT_KEPT}
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in kept.items()
        if value is not None and value == value
    }


def write_entry(path: Path, entry: dict[str, Any]) -> None:
    text = json.dumps(sealed(entry), indent=1, ensure_ascii=False, sort_keys=False)
    write_text(path, text + "\n")


def read_entry(path: Path) -> dict[str, Any]:
    """The content of an entry; refuses a damaged one, and one of another card."""
    entry = read_sealed(path, AGAIN, needed=True)
    if entry.get("card_sha256") != card().sha256:
        raise InputError(
            f"{path} is an entry of card {entry.get('card')}, and this version plays card "
            f"{card().version}. {AGAIN}"
        )
    check_shape(path, entry, EntryFile)
    return entry


def check_entry(path: Path) -> None:
    """Refuses an entry that says something else than its mechanism decides now, or of the card
    something else than of its markets.

    One market is played again, without searches for lies.
    """
    entry = read_entry(path)
    then = entry["markets"].get(REPEATED_IN, {})
    now = repeated(str(entry["mechanism"]), entry["size"])
    for key in REPEATED:
        _compare(path, f"{key} is {{}} in market {REPEATED_IN!r}", then.get(key), now.get(key))
    check_sums(path, entry)


def check_sums(path: Path, entry: dict[str, Any]) -> None:
    """Refuses an entry without all markets of the card, and one whose row over the card does not
    follow from its markets.

    Columns that an entry has over the card only cannot be compared.
    """
    expected = [market.name for market in card().markets]
    if sorted(entry["markets"]) != sorted(expected):
        raise InputError(
            f"{path} has the markets {', '.join(entry['markets'])}, and the card has "
            f"{', '.join(expected)}. {AGAIN}"
        )
    follows = whole_row(entry["auction"], list(entry["markets"].values()), [])
    for key in FOLLOWING:
        what = f"{key} is {{}} over the card"
        _compare(path, what, entry["whole"].get(key), follows.get(key))


def repeated(mechanism: str, size: Size) -> Row:
    """What a mechanism decides in one market of the card."""
    played = card()
    market = played.market(REPEATED_IN)
    found = measures.decisions(mechanism, played, market, played.sizes[size])
    return _short(market_row(mechanism, market, [found]))


def _compare(path: Path, what: str, then: float | None, now: float | None) -> None:
    if (then is None) != (now is None) or (
        then is not None
        and now is not None
        and not math.isclose(now, then, rel_tol=CLOSE, abs_tol=CLOSE)
    ):
        raise InputError(f"{path} says that {what.format(then)}, and now it is {now}. {AGAIN}")


def shipped_paths() -> list[Path]:
    """The files of the entries that come with the package."""
    folder = resources.files("flmarket_sim.league").joinpath("entries")
    return sorted(Path(str(path)) for path in folder.iterdir() if path.name.endswith(".json"))


def shipped_entries() -> list[dict[str, Any]]:
    """The entries that come with the package, by their places."""
    found = [read_entry(path) for path in shipped_paths()]
    return [one["entry"] | {"place": one["place"]} for one in _placed(found)]


def place_among(entry: dict[str, Any], others: Sequence[dict[str, Any]]) -> int | None:
    """The place of an entry among others; None if it has none."""
    known = [other for other in others if other["auction"] != entry["auction"]]
    own = next(one for one in _placed([entry, *known]) if one["entry"] is entry)
    return own["place"]  # type: ignore[no-any-return]


def _placed(found: Sequence[dict[str, Any]]) -> list[Row]:
    return in_order([entry["whole"] | {"entry": entry} for entry in found])
