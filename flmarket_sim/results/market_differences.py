"""Auctions compared with one of them in the same markets, by intervals that hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.results.result import ResultPart
from flmarket_sim.statistics import simultaneous

Floats = NDArray[np.float64]
VERDICTS = {-1: "lower", 0: "not told apart", 1: "higher"}


@dataclass(frozen=True)
class InOneMarket:
    """A number of each market (K,) under an auction, and what else the row says."""

    auction: str
    numbers: Floats
    facts: dict[str, Any]


def difference_rows(
    pairs: Sequence[tuple[InOneMarket, InOneMarket]], population: NDArray[np.int64] | None
) -> list[dict[str, Any]]:
    """A row for each pair: the mean of its second less its first, over markets that both have.

    The intervals cover all differences at once with a confidence of 95 %. `verdict` says what that
    decides about each.
    """
    with np.errstate(invalid="ignore"):
        less = [second.numbers - first.numbers for first, second in pairs]
    rows = []
    for (first, second), each, estimate in zip(
        pairs, less, simultaneous(less, population), strict=True
    ):
        both = np.isfinite(each)
        sign = int(estimate.low > 0) - int(estimate.high < 0)
        rows.append(
            second.facts
            | {
                "auction": second.auction,
                "compared_with": first.auction,
                "markets": int(both.sum()),
                "mean_of_base": float(first.numbers[both].mean()) if both.any() else np.nan,
                "difference": estimate.mean,
                "difference_low": estimate.low,
                "difference_high": estimate.high,
                "verdict": VERDICTS[sign],
            }
        )
    return rows


def differences_part(rows: Sequence[dict[str, Any]], what: str) -> list[ResultPart]:
    """The differences as people see them; nothing without any."""
    if not rows:
        return []
    base = rows[0]["compared_with"]
    note = (
        f"Means over the same markets. With 95 % confidence all {len(rows):,} intervals hold "
        "together."
        if len(rows) > 1
        else "The mean over the same markets, with its 95 % interval."
    )
    names = {"budget_factor": "budget", "auction": "auction", "verdict": "verdict"}
    shown = []
    for row in rows:
        line = {names[key]: row[key] for key in ("budget_factor", "auction") if key in row}
        line |= {f"less {base}{end}": row[f"difference{end}"] for end in ("", "_low", "_high")}
        shown.append(line | {"verdict": row["verdict"], "markets": row["markets"]})
    return [ResultPart(shown, title=f"{what} less that of {base}", notes=[note])]
