"""What the league says of a mechanism in one sentence, from its row over the whole card."""

from __future__ import annotations

from typing import Any

from flmarket_sim.league.places import why_no_place
from flmarket_sim.league.players import CERTIFIED

NOTABLE = 0.01  # of cost: a gain or a shortfall above it is worth a word
RARE = 0.005  # share of markets without a sale that needs no word


def verdict(row: dict[str, Any]) -> str:
    """The sentence about a row of the whole card; its `records` say what owners could lie about."""
    parts = [_error(row), _truth(row)]
    if (row.get("underpaid") or 0.0) > NOTABLE:
        who = row.get("underpaid_owners")
        whom = "" if who is None else f" ({who:.0%} of sellers are underpaid)"
        parts.append(
            f"what owners are paid too little adds up to {row['underpaid']:.1%} of cost{whom}"
        )
    if (row.get("invalid") or 0.0) > RARE:
        parts.append(f"buys nothing in {row['invalid']:.1%} of markets")
    if row.get("played", 0) < row.get("markets", 0):
        parts.append(f"could play {row['played']} of {row['markets']} markets")
    if row.get("why_not"):
        parts.append(f"trained no model ({row['why_not']})")
    if why_no_place(row):
        parts.append("so it has no place")
    return f"{row['auction']}: " + "; ".join(part for part in parts if part)


def _error(row: dict[str, Any]) -> str:
    over = row.get("over_floor")
    if over is None:
        return "no error over the floor can be given"
    return f"its error is {over:.2f}{_ends(row, 'over_floor', '.2f')} times the floor"


def _truth(row: dict[str, Any]) -> str:
    gain = row.get("gain")
    if gain is None:
        return "its owners were not searched for lies"
    certified = ", with certified records" if row.get("records") == CERTIFIED else ""
    if gain < NOTABLE:
        return f"the best lies found gain {gain:.2%} of cost{certified}"
    least, most = row.get("gain_least", gain), row.get("gain_most", gain)
    spread = f", {least:.0%} to {most:.0%} by market" if most > least else ""
    gaining = row.get("gaining")
    who = "" if gaining is None else f"; {gaining:.0%} of owners gain"
    said = f"a lie gains {gain:.0%} of cost on average ({spread.lstrip(', ')}{who})"
    return said.replace("(; ", "(") + certified


def _ends(row: dict[str, Any], name: str, form: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
