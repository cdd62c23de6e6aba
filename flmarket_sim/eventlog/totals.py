"""Totals of the rounds of one buyer, as summaries and sweeps show them."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    "final_balanced_accuracy": float,
}
# What accuracies are compared with. They do not follow from the rounds: run.json has them.
YARDSTICKS: dict[str, type] = {
    "constant_guess": float,
    "constant_guess_balanced": float,
    "noiseless_accuracy": float,
    "noiseless_balanced_accuracy": float,
}
TOTALS |= YARDSTICKS
MEASURED = ("accuracy", "loss", "balanced_accuracy")  # of a model that was evaluated


def _unless_nan(total: float) -> float | None:
    return None if math.isnan(total) else total


def totals(
    rows: list[dict[str, Any]], yardsticks: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Totals of `round` events, with the keys of TOTALS.

    A total is None where no round was valid, or no model was evaluated, or where only real clients
    know it; a yardstick is None where it is not given.
    """
    valid = [row for row in rows if row["valid"]]
    measured = [row for row in rows if row["accuracy"] is not None]
    return {
        "rounds": len(rows),
        "invalid_rounds": len(rows) - len(valid),
        "budget": math.fsum(row["budget"] for row in rows),
        "spent": math.fsum(row["spent"] for row in rows),
        "owners_surplus": _unless_nan(math.fsum(row["spent"] - row["value_sold"] for row in rows)),
        "gradients": sum(row["delivered"] for row in rows),
        "lost": sum(row["winners"] - row["delivered"] for row in rows),
        "privacy_sold": math.fsum(row["privacy_sold"] for row in rows),
        "mean_error_bound": math.fsum(row["error_bound"] for row in valid) / len(valid)
        if valid
        else None,
        "final_accuracy": measured[-1]["accuracy"] if measured else None,
        "final_loss": measured[-1]["loss"] if measured else None,
        "final_balanced_accuracy": measured[-1]["balanced_accuracy"] if measured else None,
    } | _known(yardsticks)


def buyers_totals(
    rows: list[dict[str, Any]],
    buyers: list[str],
    yardsticks: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """The totals of each buyer who had a round, in the order of `buyers`.

    `yardsticks` are by buyer, as run.json has them.
    """
    by_buyer = {name: [row for row in rows if row["buyer"] == name] for name in buyers}
    known = yardsticks or {}
    return {name: totals(own, known.get(name)) for name, own in by_buyer.items() if own}


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
    *MEASURED,
)


def totals_of_table(
    rounds: pa.Table, yardsticks: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The same totals from a table with the columns ADDED: a long run does not fit into dicts."""
    column = {
        name: rounds.column(name).to_numpy() for name in ADDED if name not in ("buyer", *MEASURED)
    }
    valid = column["valid"].astype(bool)
    measured = rounds.select(MEASURED).filter(rounds.column("accuracy").is_valid())
    last = (
        measured.slice(len(measured) - 1).to_pylist()
        if len(measured)
        else [dict.fromkeys(MEASURED)]
    )
    return {
        "rounds": len(valid),
        "invalid_rounds": int((~valid).sum()),
        "budget": math.fsum(column["budget"]),
        "spent": math.fsum(column["spent"]),
        "owners_surplus": _unless_nan(math.fsum(column["spent"] - column["value_sold"])),
        "gradients": int(column["delivered"].sum()),
        "lost": int((column["winners"] - column["delivered"]).sum()),
        "privacy_sold": math.fsum(column["privacy_sold"]),
        "mean_error_bound": math.fsum(column["error_bound"][valid]) / int(valid.sum())
        if valid.any()
        else None,
        "final_accuracy": last[0]["accuracy"],
        "final_loss": last[0]["loss"],
        "final_balanced_accuracy": last[0]["balanced_accuracy"],
    } | _known(yardsticks)


def _known(yardsticks: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: (yardsticks or {}).get(name) for name in YARDSTICKS}
