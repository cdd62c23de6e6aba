"""Runs of markets for studies and sweeps: changed scenarios, temporary folders, loaded data."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.learning import dataset
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market.simulation import run
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import change_scenario

DATA_SETS_KEPT = 2


def changed(scenario: Scenario, **tables: Any) -> Scenario:
    """The scenario without its study and with other values. The keyword a__b is the path a.b."""
    return change_scenario(scenario, study=None, **tables)


def auction_table(text: str) -> dict[str, Any]:
    """The [auction] table behind a name with weights and options."""
    return AuctionName.parse(text).table


@contextmanager
def ran(scenario: Scenario, data: Dataset | None = None) -> Iterator[Path]:
    """The directory of a finished run, which is deleted after the block."""
    with tempfile.TemporaryDirectory() as folder:
        yield run(scenario, Path(folder) / "run", data=data).path


_loaded: dict[str, Dataset] = {}


def load_data(scenario: Scenario) -> Dataset | None:
    """The scenario's data, or None in a market without learning.

    The process keeps the last data sets, because consecutive runs often share one. Files of the
    user may change, so their plug-in remembers them itself.
    """
    if not _learns(scenario):
        return None
    if isinstance(dataset.data_source(scenario), dataset.OwnFiles):
        return dataset.read_data(scenario)
    key = data_key(scenario)
    if key not in _loaded:
        while len(_loaded) >= DATA_SETS_KEPT:
            del _loaded[next(iter(_loaded))]
        _loaded[key] = dataset.read_data(scenario)
    return _loaded[key]


def data_key(scenario: Scenario) -> str:
    """Equal for scenarios that train on the same data."""
    return f"{scenario.data.model_dump_json()} {scenario.seed} {_learns(scenario)}"


def _learns(scenario: Scenario) -> bool:
    return any(buyer.model.name != "none" for buyer in scenario.resolved_buyers())
