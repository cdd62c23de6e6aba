"""The scenario that asks for the league: its markets are those of the card."""

from __future__ import annotations

from collections.abc import Sequence

from flmarket_sim.league.card import Size, card
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import build_scenario


def league_scenario(auctions: Sequence[str], size: Size = "full") -> Scenario:
    """A scenario whose study is the league of these auctions, with the version of the card."""
    return build_scenario(
        {
            "name": "league" if size == "full" else "league-quick",
            "description": f"card {card().version}, sha256 {card().sha256}",
            "seed": 0,
            "data": {"name": "synthetic", "records": 1000},
            "owners": {"count": 10},
            "market": {"bidders": 2},
            "model": {"name": "none"},
            "study": {"name": "league", "auctions": list(auctions), "size": size},
        }
    )
