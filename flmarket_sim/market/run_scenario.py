"""`fm.run`: a run of a scenario that is given as a path, as a shipped name or as an object."""

from __future__ import annotations

import os
from typing import Any

from flmarket_sim.eventlog.run import Run
from flmarket_sim.learning.arrays_data import arrays_table
from flmarket_sim.learning.dataset import Dataset, is_loaded
from flmarket_sim.market import simulation
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import change_scenario, load_scenario
from flmarket_sim.storage.result_folders import free_folder, result_folder


def run(
    scenario: Scenario | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    progress: simulation.Progress | None = None,
    force: bool = False,
    **changes: Any,
) -> Run:
    """Simulates a scenario and writes every event to the directory `out`.

    Parameters
    ----------
    scenario
        A scenario file, the name of a shipped scenario ("quickstart"), or a Scenario.
    out
        A new or empty directory; by default `runs/NAME-HASH`, as on the command line.
    progress
        A function that is called with (rounds done, rounds in all) after every round of a buyer.
    force
        Whether a run in the directory that failed or was stopped is replaced.
    **changes
        Other values for the scenario. A double underscore stands for a dot of the path, and a text
        in the place of a plug-in's table is its name:
        `fm.run("quickstart", rounds=10, owners__count=50, auction="all-in")`.
        A `Dataset` as `data` replaces the scenario's data: run.json then says "arrays" with their
        SHA-256. If it is the scenario's own, from `load_data`, it is just not loaded again.
    """
    data = changes.pop("data") if isinstance(changes.get("data"), Dataset) else None
    if changes.get("data", ...) is None:
        del changes["data"]
    if data is not None and data.origin is None:
        changes["data"] = arrays_table(data)
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, **changes)
    elif changes:
        scenario = change_scenario(scenario, **changes)
    if data is not None and data.origin is not None and not is_loaded(scenario, data):
        scenario = change_scenario(scenario, data=arrays_table(data))
    place = result_folder if force else free_folder
    folder = place(scenario.name, scenario.digest()) if out is None else out
    return simulation.run(scenario, folder, progress, data, force)
