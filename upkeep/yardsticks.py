"""`python -m upkeep.yardsticks`: measures the floor and first-best of the card of the league.

It takes about half an hour of one core, most of it for the market of a hundred bidders. Finished
blocks are kept in build/yardsticks, so that a stopped command goes on.
"""

from __future__ import annotations

import pickle
from pathlib import Path

from flmarket_sim.league import yardsticks
from flmarket_sim.league.card import Card, CardMarket, card
from upkeep.pins import ROOT

KEPT = ROOT / "build" / "yardsticks"
WRITTEN = ROOT / "flmarket_sim" / "league" / "yardsticks.json"


def block_of(played: Card, market: CardMarket, block: slice) -> yardsticks.Yardsticks:
    """A block that was measured before for the same market, or measured now."""
    path = KEPT / f"{played.market_sha256(market)[:16]}-{block.start}.pickle"
    if path.exists():
        kept: yardsticks.Yardsticks = pickle.loads(path.read_bytes())
        return kept
    found = yardsticks.measured(played, market, block)
    path.write_bytes(pickle.dumps(found))
    return found


def main(written: Path = WRITTEN) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[yardsticks.Yardsticks]] = {}
    for market in card().markets:
        blocks = yardsticks.blocks(market)
        for number, block in enumerate(blocks, 1):
            print(f"\r{market.name}: block {number} of {len(blocks)}   ", end="", flush=True)
            found.setdefault(market.name, []).append(block_of(card(), market, block))
    yardsticks.write(written, card(), found)
    print(f"\nwrote {written.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
