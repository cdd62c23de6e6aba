"""The rows of the league: what the tasks found, by mechanism and market, and over the card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.league.card import CardMarket, card
from flmarket_sim.league.card_draws import draws
from flmarket_sim.league.league_columns import COLUMNS, LeagueColumn
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
        row |= {} if errors is None else over_yardsticks(np.array(errors), market)
        row |= {key: value for key, value in result.items() if key != "errors"}
    reasons = dict.fromkeys(result["why_not"] for result in found if "why_not" in result)
    row["why_not"] = "; ".join(reasons) or None
    return row


def whole_row(
    name: str, rows: Sequence[Row], accuracies: Sequence[float], why_not: str = ""
) -> Row:
    """One mechanism over the card: the mean of its markets, each counting the same.

    `most_invalid` is the largest share of a market's draws without a sale, and `gain_least` and
    `gain_most` are the ends of the range of its gains. `why_not` says why it trained no model.
    """
    whole: Row = {"auction": name, "market": WHOLE}
    for column in COLUMNS:
        whole |= _over_markets(column, rows)
    whole["most_invalid"] = max((row["invalid"] for row in rows if "invalid" in row), default=None)
    gains = [row["gain"] for row in rows if _number(row.get("gain"))]
    whole |= {"gain_least": min(gains), "gain_most": max(gains)} if gains else {}
    if accuracies:
        whole |= spread("accuracy", from_seeds(np.array(accuracies)))
    whole["played"] = sum("invalid" in row for row in rows)
    whole["markets"] = len(rows)
    return whole | ({"why_not": why_not} if why_not else {})


def _over_markets(column: LeagueColumn, rows: Sequence[Row]) -> Row:
    """The mean of a column over the markets that have it, geometric for a ratio of errors.

    Markets are drawn independently, so the distances to the ends of their intervals add up in
    squares. Where a market has no interval, the mean has none.
    """
    there = [row for row in rows if _number(row.get(column.name))]
    if not there:
        return {}
    into, back = (np.log, np.exp) if column.ratio else (np.asarray, np.asarray)
    values = into(np.array([row[column.name] for row in there], float))
    found: Row = {column.name: float(back(values.mean()))}
    ends = (f"{column.name}_low", f"{column.name}_high")
    if column.interval and all(_number(row.get(end)) for row in there for end in ends):
        for end, sign in zip(ends, (-1.0, 1.0), strict=True):
            off = into(np.array([row[end] for row in there], float)) - values
            mean = values.mean() + sign * float(np.sqrt((off**2).sum()) / len(there))
            found[end] = float(back(mean))
    return found


def over_yardsticks(errors: Floats, market: CardMarket) -> Row:
    """Errors of the first draws of a market over its floor and over first-best."""
    population = draws(card(), market, len(errors))[0].population
    row: Row = {}
    for name, yardstick in shipped(card(), market)._asdict().items():
        over = estimate(errors, population, yardstick[: len(errors)])
        row |= spread(f"over_{name}", over)
    return row


def _number(value: Any) -> bool:
    return isinstance(value, float | int) and bool(np.isfinite(value))
