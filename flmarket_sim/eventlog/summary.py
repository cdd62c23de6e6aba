"""What a run adds up to: totals of every buyer, of the owners, and of each behaviour."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flmarket_sim.eventlog.behaviour_earnings import earnings
from flmarket_sim.eventlog.cheat_earnings import cheat_earnings
from flmarket_sim.eventlog.reader import read_events, read_ledger, read_run
from flmarket_sim.eventlog.totals import ADDED, totals_of_table
from flmarket_sim.scenario.later_keys import as_it_was_meant

LEARNING = ("learning_rate", "optimizer", "schedule", "averaging", "shrink")  # how, not which model


def summarise(run: str | os.PathLike[str]) -> dict[str, Any]:
    """Totals of a run, one entry a buyer."""
    info = read_run(run)
    rounds = read_events(run, "round").select(ADDED)
    ledger = read_ledger(run) if info["outcome"] == "finished" else None
    sold = np.zeros(1) if ledger is None else ledger.column("privacy_sold").to_numpy()
    buyers = [buyer["name"] for buyer in info["scenario"]["buyers"]] or ["buyer"]
    return {
        "name": info["scenario"]["name"],
        "outcome": info["outcome"],
        "repeatable": info.get("repeatable", True),
        "events": info.get("log", {}).get("events"),
        "wall_seconds": info.get("wall_seconds"),
        "directory": str(run),
        "owners": info["scenario"]["owners"]["count"],
        "owners_who_sold": int((sold > 0).sum()),
        "largest_privacy_sold": float(sold.max()),
        "mean_privacy_sold": float(sold[sold > 0].mean()) if (sold > 0).any() else 0.0,
        "buyers": {
            name: totals_of_table(own, yardsticks_of(info).get(name))
            for name in buyers
            if len(own := of_buyer(rounds, name))
        },
        "models": models_of(info["scenario"]),
        "error": errors_of(info["scenario"]),
        "notes": info.get("notes", []),
        "warnings": warnings_of(info),
        "behaviours": earnings(run) if info["scenario"]["owners"].get("behaviours") else {},
        "cheats": cheat_earnings(run) if watched(info["scenario"]) else {},
        "truth": None if ledger is None else truth_of(ledger),
    }


def truth_of(ledger: pa.Table) -> dict[str, float] | None:
    """What a ledger says about sales after which owners may have cheated; None where it did not
    look.

    kept          money from buyers less lost deposits and true costs
    forfeited     lost deposits
    lost          the privacy that all records have truly lost
    mean_lost     the privacy that the records of an owner who sold have truly lost, a mean
    largest_lost  the most that the records of an owner have lost
    """
    if "privacy_lost" not in ledger.column_names:
        return None
    earned, forfeited, cost, sold, lost = (
        ledger.column(name).to_numpy()
        for name in ("earned", "forfeited", "true_cost", "privacy_sold", "privacy_lost")
    )
    return {
        "kept": float((earned - forfeited - cost).sum()),
        "forfeited": float(forfeited.sum()),
        "lost": float(lost.sum()),
        "mean_lost": float(lost[sold > 0].mean()) if (sold > 0).any() else 0.0,
        "largest_lost": float(lost.max()),
    }


def watched(scenario: dict[str, Any]) -> bool:
    """Whether owners of a market cheat after the sale, or its broker looks for it."""
    return bool(scenario["owners"].get("cheats") or scenario.get("check"))


def warnings_of(info: dict[str, Any]) -> list[str]:
    """Why some numbers of a run mean little, as run.json says it."""
    stored = info.get("warnings")
    return [str(text) for text in stored] if isinstance(stored, list) else []


def yardsticks_of(info: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What run.json says that accuracies are to be compared with, by buyer.

    It is empty for a run that has not finished, or that an earlier version made.
    """
    stored = info.get("yardsticks")
    by_buyer = stored if isinstance(stored, dict) else {}
    return {
        name: {key: number for key, number in own.items() if isinstance(number, float)}
        for name, own in by_buyer.items()
        if isinstance(own, dict)
    }


def models_of(scenario: dict[str, Any]) -> dict[str, str]:
    """The model of each buyer of a scenario as data: its name, with its options if it has some."""
    buyers = scenario["buyers"] or [{"name": "buyer"}]
    return {buyer["name"]: _described(buyer.get("model") or scenario["model"]) for buyer in buyers}


def perturbations_of(scenario: dict[str, Any]) -> dict[str, str]:
    """The perturbation of each buyer's market, with its options if it has some."""
    tables = as_it_was_meant(scenario)
    buyers = tables["buyers"] or [{"name": "buyer"}]
    common = tables["perturbation"]
    return {b["name"]: _described(b.get("perturbation") or common) for b in buyers}


def errors_of(scenario: dict[str, Any]) -> dict[str, str]:
    """Which error each buyer's bound is of: "vector" or "coordinate"."""
    tables = as_it_was_meant(scenario)
    buyers = tables["buyers"] or [{"name": "buyer"}]
    common = tables["aggregation"]
    return {buyer["name"]: str((buyer.get("aggregation") or common)["error"]) for buyer in buyers}


def _described(model: dict[str, Any]) -> str:
    common = {"name", "evaluate_every", *LEARNING}
    options = [f"{key} = {value}" for key, value in model.items() if key not in common]
    return f"{model['name']} ({', '.join(options)})" if options else str(model["name"])


def of_buyer(rounds: pa.Table, name: str) -> pa.Table:
    """The rounds of one buyer."""
    return rounds.filter(pc.equal(rounds.column("buyer"), name))
