"""Keys of a scenario that were added after the first version, and what scenarios meant before.

They keep two promises: the hash of an older scenario stays, and the scenario in an older run.json
is read as it was meant, although the default of a key may be another one today.
"""

from __future__ import annotations

import copy
from typing import Any

# Part, key, and what every scenario meant before the key was there.
LATER_KEYS: tuple[tuple[str | None, str, Any], ...] = (
    ("owners", "behaviours", []),
    ("owners", "cheats", []),
    (None, "check", None),
    ("market", "counterfactual", False),
    ("privacy", "noise", "simulation"),
    (None, "study", None),
    ("log", "models", "never"),
    ("log", "records", True),
    ("log", "ceiling", "auto"),  # there was none; the events of a run are the same with it
    (None, "log", {}),
    (None, "perturbation", {"name": "laplace"}),
    (None, "robust", {"name": "weighted-sum"}),
    (None, "contribution", None),
    ("aggregation", "error", "coordinate"),
    (None, "learning", {"update": "gradient", "steps": 10, "learning_rate": 0.1, "batch": None}),
    ("model", "optimizer", {"name": "sgd"}),
    ("model", "schedule", {"name": "constant"}),
    ("model", "averaging", 0.0),
    ("model", "shrink", False),
)
LATER_PARTS_OF_BUYERS = ("perturbation", "robust")  # a buyer without one has the scenario's
OF_BUYERS = ("aggregation", "model")  # parts that a buyer may have too


def without_later_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Complete tables without the later keys that say what every scenario meant before."""
    plain = copy.deepcopy(tables)
    for part, key, before in LATER_KEYS:
        places = [plain if part is None else plain[part]]
        if part in OF_BUYERS:
            places += [buyer[part] for buyer in plain["buyers"] if buyer[part] is not None]
        for table in places:
            if table[key] == before:
                del table[key]
    for buyer in plain["buyers"]:
        for key in LATER_PARTS_OF_BUYERS:
            if buyer[key] is None:
                del buyer[key]
    return plain


def as_it_was_meant(stored: dict[str, Any]) -> dict[str, Any]:
    """Tables of a scenario that an earlier version stored, with the keys that were added later.

    What the keys are by default today is not what every scenario meant before they were there.
    """
    tables = copy.deepcopy(stored)
    for part, key, before in LATER_KEYS:
        buyers = tables.get("buyers") or [] if part in OF_BUYERS else []
        for place in (tables, *buyers):
            table = place if part is None else place.get(part)
            if isinstance(table, dict):
                table.setdefault(key, copy.deepcopy(before))
    return tables
