"""The buyers of a run side by side, and why they had different budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.eventlog.summary import of_buyer
from flmarket_sim.owners.population import draw_money
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.tables.cells import Row, number


def buyer_rows(
    totals: dict[str, dict[str, Any]], rounds: pa.Table, scenario: Scenario
) -> list[Row]:
    """One row a buyer: her policies, her totals, and where her budgets come from.

    budget_factor   the mean of the factors that she drew, where her budget is a factor
    asked_value     what the privacy of the owners whom she asked is worth to them, a mean over
                    rounds; a round's budget is its factor times this
    """
    rows: list[Row] = []
    for place, buyer in enumerate(scenario.resolved_buyers()):
        if buyer.name not in totals:
            continue
        row: dict[str, Any] = {"buyer": buyer.name, "auction": buyer.auction.name}
        row |= {"aggregation": buyer.aggregation.name, **totals[buyer.name]}
        if buyer.budget.factor is not None:
            budgets = of_buyer(rounds, buyer.name).column("budget").to_numpy()
            streams = Streams(scenario.seed)
            factors = draw_money(streams, buyer.budget, place, scenario.rounds)[: len(budgets)]
            row["budget_factor"] = float(factors.mean())
            if factors.all():
                row["asked_value"] = float(np.mean(budgets / factors))
        rows.append(row)
    return rows


def why_budgets_differ(rows: list[Row], scenario: Scenario) -> str | None:
    """A sentence that explains different budgets, from the rows; None where they are equal."""
    if len({row["budget"] for row in rows}) == 1:
        return None
    budgets = f"Budgets go from {_ends(rows, 'budget')}"
    if not all("asked_value" in row for row in rows):
        return f"{budgets}, since each buyer draws her own money from her own range."
    ranges = {buyer.budget.factor for buyer in scenario.resolved_buyers()}
    drawn = f"factors ({_ends(rows, 'budget_factor')} on average)"
    if len(ranges) > 1:
        drawn += " from ranges that differ"
    fixed = all(low == high for low, high in (r for r in ranges if r is not None))
    asks = f"asks other owners, whose privacy is worth {_ends(rows, 'asked_value')} a round to them"
    rule = "a round's budget is the factor times what the privacy of the asked owners is worth"
    if fixed and len(ranges) == 1:
        return f"{budgets} although all have one factor: each buyer {asks}; {rule}."
    return f"{budgets}, since each buyer draws her own {drawn} and {asks}; {rule}."


def what_accuracies_mean(rows: list[Row]) -> str | None:
    """What the buyers' accuracies are compared with; None where no model was evaluated."""
    known = [row for row in rows if row.get("final_accuracy") is not None]
    parts = [
        f"{label} {_ends(measured, name)}"
        for name, label in (
            ("final_accuracy", "Accuracies are"),
            ("final_balanced_accuracy", "balanced"),
            ("constant_guess", "the constant guess has"),
            ("noiseless_accuracy", "the same markets without noise"),
        )
        if (measured := [row for row in known if row.get(name) is not None])
    ]
    return f"{', '.join(parts)}." if known else None


def _ends(rows: list[Row], name: str) -> str:
    values = [row[name] for row in rows]
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"
