"""What the league says of a mechanism in one sentence, from its row over the whole card."""

from __future__ import annotations

from typing import Any

NOTABLE = 0.01  # of cost: a gain or a shortfall above it is worth a word
RARE = 0.005  # share of markets without a sale that needs no word


def verdict(row: dict[str, Any]) -> str:
    """The sentence about a row of the whole card."""
    parts = [_error(row), _truth(row)]
    if (row.get("underpaid") or 0.0) > NOTABLE:
        parts.append(f"pays owners {row['underpaid']:.1%} less than their cost")
    if (row.get("invalid") or 0.0) > RARE:
        parts.append(f"buys nothing in {row['invalid']:.1%} of markets")
    if row.get("played", 0) < row.get("markets", 0):
        parts.append(f"could play {row['played']} of {row['markets']} markets")
    return f"{row['auction']}: " + "; ".join(part for part in parts if part)


def _error(row: dict[str, Any]) -> str:
    over = row.get("over_floor")
    if over is None:
        return "no error over the floor can be given"
    ends = f"[{row['over_floor_low']:.2f}, {row['over_floor_high']:.2f}]"
    return f"its error is {over:.2f} {ends} times the floor"


def _truth(row: dict[str, Any]) -> str:
    gain, low = row.get("gain"), row.get("gain_low")
    if gain is None or low is None:
        return "its owners were not searched for lies"
    if gain < NOTABLE:
        return f"the best lies found gain {gain:.2%} of cost"
    return f"a lie gains {gain:.0%} of cost ({row['gaining']:.0%} of owners gain)"
