"""`fm.run`: a run of a scenario that is given as a path, as a shipped name or as an object."""

from __future__ import annotations

import os
from typing import Any

from flmarket_sim.eventlog.run import Run
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.market import simulation
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.scenario_file import change_scenario, load_scenario
from flmarket_sim.storage.result_folders import free_folder


def run(
    scenario: Scenario | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    progress: simulation.Progress | None = None,
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
    **changes
        Other values for the scenario. A double underscore stands for a dot of the path, and a text
        in the place of a plug-in's table is its name:
        `fm.run("quickstart", rounds=10, owners__count=50, auction="all-in")`.
        A `Dataset` as `data` is the scenario's data set, already loaded; None loads it.
    """
    loaded = isinstance(changes.get("data"), Dataset | None)
    data = changes.pop("data", None) if loaded else None
    if not isinstance(scenario, Scenario):
        scenario = load_scenario(scenario, **changes)
    elif changes:
        scenario = change_scenario(scenario, **changes)
    folder = free_folder(scenario.name, scenario.digest()) if out is None else out
    return simulation.run(scenario, folder, progress, data)
