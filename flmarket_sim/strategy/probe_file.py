"""Probes in Parquet: one row for each owner with her best report, which can be replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flmarket_sim.auctions.auction import check_budget
from flmarket_sim.errors import FlmarketError, InputError, shortened
from flmarket_sim.owners.bids import BidBatch, Profiles
from flmarket_sim.owners.family_table import family_names
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.storage.atomic_files import write_parquet
from flmarket_sim.storage.untrusted_files import read_parquet
from flmarket_sim.strategy.probe import Probe
from flmarket_sim.strategy.search import STAGES

FORMAT = "1"
MEASURED = [
    "rate",
    "privacy_budget",
    "data_size",
    "budget",
    "truthful_utility",
    "best_utility",
    "cost",
    "told_privacy_budget",
    "told_data_size",
]
NUMBERS = pa.schema(
    [(name, pa.float64()) for name in MEASURED] + [("told_values", pa.list_(pa.float64()))]
)


def table(probe: Probe, facts: dict[str, Any] | None = None) -> pa.Table:
    """One row for each owner of a market. `facts` (auction, seed, ...) become metadata."""
    markets, n = probe.truth.shape
    truth = probe.truth
    false = probe.false_parts()
    columns: dict[str, Any] = {
        "market": pa.array(np.repeat(np.arange(markets), n), pa.int32()),
        "owner": pa.array(np.tile(np.arange(n), markets), pa.int32()),
        **_population_column(truth),
        "budget": np.repeat(probe.budget, n),
        "budget_factor": np.repeat(probe.factor, n),
        "family": pa.array(family_names(truth.family).ravel().tolist()).dictionary_encode(),
        "rate": truth.rate.ravel(),
        "privacy_budget": truth.privacy_budget.ravel(),
        "data_size": truth.data_size.ravel(),
        "truthful_utility": probe.truthful_utility.ravel(),
        "best_utility": probe.best_utility.ravel(),
        "gain": probe.gain.ravel(),
        "cost": probe.cost.ravel(),
        "gain_over_cost": probe.relative_gain.ravel(),
        "stage": pa.DictionaryArray.from_arrays(
            pa.array(probe.stage.ravel(), pa.int8()), list(STAGES)
        ),
        "false_values": false["values"].ravel(),
        "false_privacy_budget": false["privacy_budget"].ravel(),
        "false_data_size": false["data_size"].ravel(),
        "told_privacy_budget": probe.privacy_budget.ravel(),
        "told_data_size": probe.data_size.ravel(),
        "told_values": pa.array(
            list(probe.values.reshape(markets * n, -1)), pa.list_(pa.float64())
        ),
        "told_family": pa.array(probe.stated.names(), pa.string()).dictionary_encode(),
        "told_scale": probe.stated.scale.ravel(),
    }
    described = {
        "flmarket_probe": FORMAT,
        "facts": json.dumps((facts or {}) | {"seed": probe.seed}, sort_keys=True),
    }
    return pa.table(columns).replace_schema_metadata(described)


def _population_column(truth: Profiles) -> dict[str, Any]:
    """The population of each owner's market, where the sample has populations."""
    if truth.population is None:
        return {}
    return {"population": pa.array(np.repeat(truth.population, truth.shape[1]), pa.int32())}


def write_probe(probe: Probe, path: str | Path, facts: dict[str, Any] | None = None) -> Path:
    """Writes a probe; the file appears whole or not at all."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_parquet(target, table(probe, facts))
    except OSError as error:
        raise FlmarketError(f"the probe cannot be written to {target}: {error}") from None
    return target


def read_probe(path: str | Path) -> tuple[Probe, dict[str, Any]]:
    """The probe of a file, ready to be replayed, and the facts that were written with it."""
    try:
        stored = read_parquet(Path(path), NUMBERS)
        metadata = stored.schema.metadata or {}
        facts = json.loads(metadata[b"facts"])
        markets = int(stored.column("market").to_numpy().max()) + 1
        n = stored.num_rows // markets

        if n * markets != stored.num_rows or not isinstance(facts, dict):
            raise ValueError("its rows are not the owners of whole markets")

        def square(name: str) -> Any:
            column = stored.column(name).to_numpy(zero_copy_only=False).reshape(markets, n)
            if not np.isfinite(column).all():
                raise ValueError(f"{name} has values that are not finite")
            return column

        values = np.stack(stored.column("told_values").to_pylist()).reshape(markets, n, -1)
        stage = np.array(
            [STAGES.index(name) for name in stored.column("stage").to_pylist()], np.int8
        ).reshape(markets, n)
        families = np.array(stored.column("family").to_pylist()).reshape(markets, n)
        population = square("population")[:, 0] if "population" in stored.column_names else None
        truth = Profiles(
            families, square("rate"), square("privacy_budget"), square("data_size"), population
        )
        probe = Probe(
            truth, square("budget")[:, 0].copy(), square("truthful_utility"),
            square("best_utility"), square("cost"), values,
            square("told_privacy_budget"), square("told_data_size"), stage,
            _stated(stored, (markets, n)), int(facts["seed"]),
        )  # fmt: skip
        bids = BidBatch(probe.values, probe.privacy_budget, probe.data_size)
        check_budget(bids, probe.budget)
        if not (probe.cost > 0).all():
            raise ValueError("cost has values that are not positive")
    except (
        OSError, pa.ArrowException, KeyError, ValueError, TypeError, OverflowError,
        RecursionError, FlmarketError,
    ) as error:  # fmt: skip
        raise InputError(f"{path} is not the file of a probe: {shortened(str(error))}") from None
    return probe, facts


def _stated(stored: pa.Table, shape: tuple[int, int]) -> StatedValuations:
    """What the reports state; nothing in files from before they could."""
    if "told_family" not in stored.column_names:
        return StatedValuations.tables(shape)
    scale = stored.column("told_scale").cast(pa.float64()).to_numpy(zero_copy_only=False)
    if not np.isfinite(scale).all():
        raise ValueError("told_scale has values that are not finite")
    return StatedValuations.named(stored.column("told_family").to_pylist(), scale.reshape(shape))
