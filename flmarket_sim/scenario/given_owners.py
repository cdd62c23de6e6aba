"""The number of owners where the data name them: it follows from the data if no file gives it."""

from __future__ import annotations

from typing import Any

from flmarket_sim.errors import FlmarketError
from flmarket_sim.learning.dataset import HasOwners
from flmarket_sim.learning.partitions import KeepsOwners
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Streams


def count_given_owners(tables: dict[str, Any]) -> None:
    """Puts `owners.count` into completed tables whose partition is by real owners.

    Tables in which something is wrong stay as they are: other checks say what.
    """
    owners, data = tables.get("owners"), tables.get("data")
    if not isinstance(owners, dict) or "count" in owners or not isinstance(data, dict):
        return
    partition = owners.get("partition")
    if not isinstance(partition, dict):
        return
    try:
        kept = registry.partitions.create(**partition)
        source = registry.datasets.create(**data) if isinstance(kept, KeepsOwners) else None
        if isinstance(source, HasOwners):
            seed = tables.get("seed", 0)
            owners["count"] = len(source.owner_counts(Streams(seed)))
    except (FlmarketError, TypeError, ValueError):
        return
