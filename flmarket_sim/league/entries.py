"""Entries: one small file for each mechanism that has played the card.

An entry is a JSON file with a seal: the auction as it was named, the version and hash of the card,
its row over the whole card, its main numbers in each market, and a sample of decisions that anybody
can repeat in a second. A pull request adds one, and `check_entry` compares the sample with what the
mechanism decides now.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.errors import InputError
from flmarket_sim.league import measures
from flmarket_sim.league.card import Card, Size, card
from flmarket_sim.league.league_rows import WHOLE
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.sealed_files import read_sealed, sealed
from flmarket_sim.studies.study import Row

SAMPLE, DRAWS = "iid", 10  # the market of the card whose first decisions are repeated
AGAIN = "Enter the mechanism again: `flmarket league enter NAME`"
REPEATED = ("error", "spent", "surplus", "underpaid", "invalid")
KEPT = ("over_floor", "over_floor_low", "over_floor_high", "invalid", "gain", "why_not")
CLOSE = 1e-6  # relative: libraries differ in the last bits


def entry_of(auction: str, rows: Sequence[Row], size: Size) -> dict[str, Any]:
    """The entry of a mechanism, from its rows of the league."""
    played = card()
    own = [row for row in rows if row["auction"] in (auction, label_of(auction))]
    return {
        "auction": label_of(auction),
        "card": played.version,
        "card_sha256": played.sha256,
        "size": size,
        "sample": sample_of(auction, played),
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
    """A row with six digits of each number, and without what is empty or in the entry itself."""
    kept = {key: value for key, value in row.items() if key not in ("auction", "market")}
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in kept.items()
        if value is not None and value == value
    }


def sample_of(auction: str, played: Card) -> Row:
    """What the mechanism decides in a few draws of one market."""
    sizes = played.sizes["quick"].model_copy(update={"decisions": DRAWS})
    found = measures.attempted(measures.decisions, auction, played, played.market(SAMPLE), sizes)
    return {key: found.get(key) for key in REPEATED if key in found}


def write_entry(path: Path, entry: dict[str, Any]) -> None:
    text = json.dumps(sealed(entry), indent=1, ensure_ascii=False, sort_keys=False)
    write_text(path, text + "\n")


def read_entry(path: Path) -> dict[str, Any]:
    """The content of an entry; refuses a damaged one, and one of another card."""
    entry = read_sealed(path, AGAIN)
    if entry.get("card_sha256") != card().sha256:
        raise InputError(
            f"{path} is an entry of card {entry.get('card')}, and this version plays card "
            f"{card().version}. {AGAIN}"
        )
    return entry


def check_entry(path: Path) -> None:
    """Refuses an entry whose sample is not what its mechanism decides now."""
    entry = read_entry(path)
    now = sample_of(str(entry["auction"]), card())
    for key, value in now.items():
        then = entry["sample"].get(key)
        if (value is None) != (then is None) or (
            value is not None and not math.isclose(value, then, rel_tol=CLOSE, abs_tol=CLOSE)
        ):
            raise InputError(
                f"{path} says that {key} is {then} in market {SAMPLE!r}, and now it is {value}. "
                f"{AGAIN}"
            )


def shipped_paths() -> list[Path]:
    """The files of the entries that come with the package."""
    folder = resources.files("flmarket_sim.league").joinpath("entries")
    return sorted(Path(str(path)) for path in folder.iterdir() if path.name.endswith(".json"))


def shipped_entries() -> list[dict[str, Any]]:
    """The entries that come with the package, by their error over the floor."""
    return sorted((read_entry(path) for path in shipped_paths()), key=_over_floor)


def place_among(entry: dict[str, Any], others: Sequence[dict[str, Any]]) -> int:
    """The place of an entry by its error over the floor, counted from one."""
    known = [other for other in others if other["auction"] != entry["auction"]]
    return 1 + sum(_over_floor(other) < _over_floor(entry) for other in known)


def _over_floor(entry: dict[str, Any]) -> float:
    over = entry["whole"].get("over_floor")
    return math.inf if over is None else float(over)
