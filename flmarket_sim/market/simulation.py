"""A run: a scenario in, a directory with every event in Parquet out."""

from __future__ import annotations

import gc
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import simpy
from threadpoolctl import threadpool_limits

from flmarket_sim import registry
from flmarket_sim.errors import FlmarketError
from flmarket_sim.eventlog import EventLog
from flmarket_sim.eventlog.round_log import RoundLog
from flmarket_sim.eventlog.schema import SCHEMA_VERSION
from flmarket_sim.eventlog.writer import disk_error
from flmarket_sim.folders import claim
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.learning.model import create_model
from flmarket_sim.market.broker import Broker
from flmarket_sim.market.buyer import Buyer
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.liars import HONEST, Cast, behaviour_labels
from flmarket_sim.market.world import World
from flmarket_sim.population import Population, create_population
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario import Scenario
from flmarket_sim.valuation import FAMILIES

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Run:
    """A finished run: where it is, and what run.json says of it."""

    path: Path
    info: dict[str, Any]


def run(scenario: Scenario, out: str | Path, progress: Progress | None = None, data: Dataset | None = None) -> Run:
    """Simulates a scenario into the new or empty directory `out`.

    `progress(done, total)` is called after every round of every buyer. `data` saves loading the scenario's data set
    again; it must be the one that the scenario names.
    """
    folder = Path(out)
    claim(folder, "run")
    began = time.perf_counter()
    info = _describe(scenario)
    _write_json(folder / "run.json", info | {"outcome": "running"})
    buyers = tuple(buyer.name for buyer in scenario.resolved_buyers())
    log = EventLog(folder / "events", buyers, behaviour_labels(scenario))
    try:
        try:
            with threadpool_limits(limits=1, user_api="blas"):  # sums in one order, whatever the machine
                world = build_world(scenario, log, data)
                _write_owners(folder / "owners.parquet", world.population, world.cast)
                simulate(world, progress)
                _write_ledger(folder / "ledger.parquet", world.ledger)
        finally:
            log.close()
    except BaseException as error:
        outcome = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        ending = {"outcome": outcome, "error": f"{type(error).__name__}: {error}"}
        _try_write_json(folder / "run.json", info | ending | _results(log, began))
        if isinstance(error, OSError) and not isinstance(error, FlmarketError):
            raise disk_error(folder, error) from error
        raise
    info |= {"outcome": "finished"} | _results(log, began)
    _write_json(folder / "run.json", info)
    return Run(folder, info)


def rounds_only(scenario: Scenario, data: Dataset | None = None) -> list[dict[str, Any]]:
    """The same market without files: its `round` events, as they would be read from the log of a run."""
    log = RoundLog(tuple(buyer.name for buyer in scenario.resolved_buyers()))
    with threadpool_limits(limits=1, user_api="blas"):
        simulate(build_world(scenario, log, data))
    return log.rounds()


def build_world(scenario: Scenario, log: EventLog, data: Dataset | None = None) -> World:
    """Population, data, clock: everything that is there before the first message."""
    streams = Streams(scenario.seed)
    learns = any(buyer.model.name != "none" for buyer in scenario.resolved_buyers())
    if learns and data is None:
        source = registry.datasets.create(scenario.data.name, **scenario.data.options)
        data = source.load(streams)
    population = create_population(scenario, streams, data.train_y if learns and data is not None else None)
    ledger = Ledger(len(population), scenario.owners.lifetime_budget)
    return World(scenario, simpy.Environment(), population, streams, log, ledger, data if learns else None)


def simulate(world: World, progress: Progress | None = None) -> None:
    """Starts every buyer and lets the world run until nothing is left to happen."""
    buyers = world.scenario.resolved_buyers()
    total, done = len(buyers) * world.scenario.rounds, 0

    def after_round(buyer: int) -> None:
        nonlocal done
        done += 1
        world.log.flush()
        world.ledger.settle()
        if progress is not None:
            progress(done, total)
        if interrupted():
            raise KeyboardInterrupt

    for index, spec in enumerate(buyers):
        model = None
        if spec.model.name != "none" and world.data is not None:
            model = create_model(spec.model, world.data, world.streams, index)
        broker = Broker(world, index, spec, model)
        world.env.process(Buyer(world, index, spec, model, broker, after_round).buy())
    with _few_collections(), _interrupts_between_rounds() as interrupted:
        world.env.run()
    world.ledger.settle()


@contextmanager
def _interrupts_between_rounds() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM wait for the end of a round, so that no event is torn; a second one does not wait.

    Signals can only be handled in the main thread; elsewhere everything stays as it is.
    """
    asked = False
    before: dict[int, Any] = {}

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _few_collections() -> Iterator[None]:
    """A market makes many objects and few cycles: Python's collector need not look at them so often."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _describe(scenario: Scenario) -> dict[str, Any]:
    return {
        "schema": SCHEMA_VERSION,
        "scenario": scenario.as_dict(),
        "scenario_sha256": scenario.digest(),
        "seed": scenario.seed,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What results may depend on beside the scenario."""
    packages = ("flmarket-sim", "numpy", "scipy", "simpy", "pyarrow", "torch")
    return {name: _version(name) for name in packages} | {"python": platform.python_version()}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _results(log: EventLog, began: float) -> dict[str, Any]:
    return {"log": log.summary(), "wall_seconds": round(time.perf_counter() - began, 3)}


def _write_owners(path: Path, people: Population, cast: Cast | None) -> None:
    behaviour = pa.nulls(len(people), pa.int8()) if cast is None else pa.array(cast.code, mask=cast.code == HONEST)
    labels = pa.array([] if cast is None else cast.labels, pa.string())
    speed = pa.nulls(len(people), pa.float64()) if people.records_per_second is None else people.records_per_second
    table = pa.table(
        {
            "owner": pa.array(range(len(people)), pa.int32()),
            "family": pa.DictionaryArray.from_arrays(people.family, list(FAMILIES)),
            "rate": people.rate,
            "privacy_budget": people.privacy_budget,
            "data_size": people.data_size,
            "records_per_second": speed,
            "behaviour": pa.DictionaryArray.from_arrays(behaviour, labels),
        }
    )
    _write_table(path, table)


def _write_ledger(path: Path, ledger: Ledger) -> None:
    table = pa.table(
        {
            "owner": pa.array(range(len(ledger.sold)), pa.int32()),
            "privacy_sold": ledger.sold,
            "gradients": ledger.gradients,
            "earned": ledger.earned,
            "transferred": ledger.transferred,
        }
    )
    _write_table(path, table)


def _write_table(path: Path, table: pa.Table) -> None:
    fresh = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, fresh, compression="zstd")
    fresh.replace(path)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(fresh, path)


def _try_write_json(path: Path, content: dict[str, Any]) -> None:
    try:
        _write_json(path, content)
    except OSError:
        pass  # the disk may be full; what matters is the error that brought us here
