"""The table of docs/league.md that says what it is worth to a mechanism that records are certified.

`python -m docs.certified_records [NAME...]` probes mechanisms, by default every built-in one that
needs no file, in the market `iid` of the card: once with records that the broker has certified and
once with records that owners may understate, whatever the mechanism itself takes them for. It
writes docs/numbers/certified-records.json, which `python -m docs.league_page` reads. It takes about
four minutes for all; what is measured is kept after each mechanism.
"""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

from docs import page_numbers
from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import Auction
from flmarket_sim.auctions.play import Player
from flmarket_sim.league import measures
from flmarket_sim.league.card import card
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.players import CERTIFIED, REPORTED, everybody, records
from flmarket_sim.storage.atomic_files import write_text

SOURCE = "certified-records"
NUMBERS = Path(__file__).parent / "numbers" / f"{SOURCE}.json"
MARKET = "iid"
SEARCH = 24, "standard"  # draws and effort, as on the full card
SEARCH_OF_LOTTERIES = 24, "quick"
SEARCH_OF_SAMPLES = 4, "quick"  # each report costs as many decisions as a lottery is drawn


def with_records(auction: Auction, kind: str) -> Auction:
    """The same mechanism where records are certified, or where owners report them."""
    other: Any = copy.copy(auction)
    other.certified = ("data_size",) if kind == CERTIFIED else ()
    return other  # type: ignore[no-any-return]


def measured(name: str) -> list[dict[str, Any]]:
    """The gain of misreports with certified and with reported records, a row for each."""
    market = card().market(MARKET)
    auction, seed = auction_in(named(name), market.error()), card().scenario(market).seed
    truth, budget = draws(card(), market, 1)
    player = Player.of(auction, truth.bids(), budget)
    of_lottery = SEARCH_OF_SAMPLES if player.sampled else SEARCH_OF_LOTTERIES
    count, effort = of_lottery if player.random else SEARCH
    truth, budget = draws(card(), market, count)
    common = {"auction": name, "own": records(name), "draws": count, "effort": effort}
    return [
        common
        | {"records": kind}
        | measures.gain_of_lies(with_records(auction, kind), truth, budget, seed, effort)
        for kind in (CERTIFIED, REPORTED)
    ]


def table() -> str:
    """A line for each mechanism; what it takes records for itself is set in bold."""
    lines = ["| mechanism | records certified | records reported | draws | search |"]
    lines.append("|---|---:|---:|---:|---|")
    certified = page_numbers.rows(SOURCE, records=CERTIFIED)
    for row in sorted(certified, key=lambda row: (row["own"] != CERTIFIED, row["auction"])):
        cells = []
        for kind in (CERTIFIED, REPORTED):
            gain = page_numbers.i(SOURCE, "gain", ".3f", auction=row["auction"], records=kind)
            cells.append(f"**{gain}**" if kind == row["own"] else gain)
        cells += [str(row["draws"]), row["effort"]]
        lines.append(f"| {row['auction']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(asked: list[str]) -> None:
    """Measures these mechanisms; what is known of the others stays."""
    for place, name in enumerate(asked, 1):
        kept = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else []
        others = [row for row in kept if row["auction"] != name]
        write_text(NUMBERS, json.dumps([*others, *measured(name)], indent=1) + "\n")
        print(f"{place} of {len(asked)}: {name}", flush=True)


if __name__ == "__main__":
    measure(sys.argv[1:] or everybody())
