"""A process that does many runs keeps nothing of those that are finished."""

import gc
import math

import pytest

from benchmarks.worker_memory import growth, memory_by_runs
from flmarket_sim.errors import FlmarketError
from flmarket_sim.market import collector, simulation
from flmarket_sim.market.world import World
from flmarket_sim.scenario.scenario_file import build_scenario

SMALL = {
    "rounds": 1,
    "data": {"name": "synthetic", "records": 400},
    "owners": {"count": 40},
    "model": {"name": "none"},
}


def worlds():
    return sum(isinstance(thing, World) for thing in gc.get_objects())


def test_at_most_the_last_world_is_in_memory():
    scenario = build_scenario(SMALL)
    for _ in range(12):
        simulation.rounds_only(scenario)
    assert worlds() <= 2


def test_logged_runs_and_failed_ones_go_too(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "SHARE", math.inf)  # everything is collected before every run
    monkeypatch.setattr(collector, "_due", 0.0)
    failing = build_scenario(
        SMALL | {"aggregation": {"name": "tests.support.mechanisms:CrashingRule"}}
    )
    for number in range(5):
        simulation.run(build_scenario(SMALL), tmp_path / f"{number}")
        with pytest.raises(FlmarketError):
            simulation.rounds_only(failing)
    assert worlds() <= 2


@pytest.mark.processes
def test_a_worker_process_does_not_grow():
    tables = {name: SMALL[name] for name in ("data", "owners")} | {"market": {"bidders": 40}}
    assert growth(memory_by_runs(tables, runs=100, steps=4, warm=10)) < 0.05
