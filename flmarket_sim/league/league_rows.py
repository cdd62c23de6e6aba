"""The rows of the league: what the tasks found, by mechanism and market, and over the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.league.card import CardMarket, card
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.league_columns import COLUMNS
from flmarket_sim.league.yardsticks import shipped
from flmarket_sim.statistics import estimate, from_seeds
from flmarket_sim.studies.study import Row, spread

Floats = NDArray[np.float64]
WHOLE = "whole card"


def market_row(name: str, market: CardMarket, found: Sequence[Row]) -> Row:
    """One mechanism in one market, from the results of its tests there."""
    row: Row = {"auction": name, "market": market.name}
    for result in found:
        errors = result.get("errors")
        row |= {} if errors is None else _over_yardsticks(np.array(errors), market)
        row |= {key: value for key, value in result.items() if key != "errors"}
    reasons = dict.fromkeys(result["why_not"] for result in found if "why_not" in result)
    row["why_not"] = "; ".join(reasons) or None
    return row


def whole_row(name: str, rows: Sequence[Row], accuracies: Sequence[float]) -> Row:
    """One mechanism over the card: the mean of its markets, each counting the same.

    Markets are drawn independently, so the distances to the ends of their intervals add up in
    squares.
    """
    whole: Row = {"auction": name, "market": WHOLE}
    for column in COLUMNS:
        there = [row for row in rows if _number(row.get(column.name))]
        if not there:
            continue
        mean = float(np.mean([row[column.name] for row in there]))
        whole[column.name] = mean
        ends = (f"{column.name}_low", f"{column.name}_high")
        if column.interval and all(_number(row.get(end)) for row in there for end in ends):
            for end, sign in zip(ends, (-1.0, 1.0), strict=True):
                off = np.array([row[end] - row[column.name] for row in there])
                whole[end] = mean + sign * float(np.sqrt((off**2).sum()) / len(there))
    if accuracies:
        whole |= spread("accuracy", from_seeds(np.array(accuracies)))
    whole["played"] = sum("error" in row for row in rows)
    whole["markets"] = len(rows)
    return whole


def _over_yardsticks(errors: Floats, market: CardMarket) -> Row:
    population = draws(card(), market, len(errors))[0].population
    row: Row = {}
    for name, yardstick in shipped(card(), market)._asdict().items():
        over = estimate(errors, population, yardstick[: len(errors)])
        row |= spread(f"over_{name}", over)
    return row


def _number(value: Any) -> bool:
    return isinstance(value, float | int) and bool(np.isfinite(value))
