"""Totals of the rounds of one buyer, as summaries and sweeps show them."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

TOTALS: dict[str, type] = {
    "rounds": int,
    "invalid_rounds": int,
    "budget": float,
    "spent": float,
    "owners_surplus": float,
    "gradients": int,
    "lost": int,
    "privacy_sold": float,
    "mean_error_bound": float,
    "final_accuracy": float,
    "final_loss": float,
}


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Totals of `round` events, with the keys of TOTALS.

    A total is None where no round was valid, or no model was evaluated.
    """
    valid = [row for row in rows if row["valid"]]
    measured = [row for row in rows if row["accuracy"] is not None]
    return {
        "rounds": len(rows),
        "invalid_rounds": len(rows) - len(valid),
        "budget": math.fsum(row["budget"] for row in rows),
        "spent": math.fsum(row["spent"] for row in rows),
        "owners_surplus": math.fsum(row["spent"] - row["value_sold"] for row in rows),
        "gradients": sum(row["delivered"] for row in rows),
        "lost": sum(row["winners"] - row["delivered"] for row in rows),
        "privacy_sold": math.fsum(row["privacy_sold"] for row in rows),
        "mean_error_bound": math.fsum(row["error_bound"] for row in valid) / len(valid)
        if valid
        else None,
        "final_accuracy": measured[-1]["accuracy"] if measured else None,
        "final_loss": measured[-1]["loss"] if measured else None,
    }


def buyers_totals(rows: list[dict[str, Any]], buyers: list[str]) -> dict[str, dict[str, Any]]:
    """The totals of each buyer who had a round, in the order of `buyers`."""
    by_buyer = {name: [row for row in rows if row["buyer"] == name] for name in buyers}
    return {name: totals(rounds) for name, rounds in by_buyer.items() if rounds}


ADDED = (
    "buyer",
    "valid",
    "budget",
    "spent",
    "value_sold",
    "delivered",
    "winners",
    "privacy_sold",
    "error_bound",
    "accuracy",
    "loss",
)


def totals_of_table(rounds: pa.Table) -> dict[str, Any]:
    """The same totals from a table with the columns ADDED: a long run does not fit into dicts."""
    column = {
        name: rounds.column(name).to_numpy()
        for name in ADDED
        if name not in ("buyer", "accuracy", "loss")
    }
    valid = column["valid"].astype(bool)
    measured = rounds.select(["accuracy", "loss"]).filter(rounds.column("accuracy").is_valid())
    last = (
        measured.slice(len(measured) - 1).to_pylist()
        if len(measured)
        else [{"accuracy": None, "loss": None}]
    )
    return {
        "rounds": len(valid),
        "invalid_rounds": int((~valid).sum()),
        "budget": math.fsum(column["budget"]),
        "spent": math.fsum(column["spent"]),
        "owners_surplus": math.fsum(column["spent"] - column["value_sold"]),
        "gradients": int(column["delivered"].sum()),
        "lost": int((column["winners"] - column["delivered"]).sum()),
        "privacy_sold": math.fsum(column["privacy_sold"]),
        "mean_error_bound": math.fsum(column["error_bound"][valid]) / int(valid.sum())
        if valid.any()
        else None,
        "final_accuracy": last[0]["accuracy"],
        "final_loss": last[0]["loss"],
    }
