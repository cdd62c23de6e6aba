"""A run: simulates a scenario, and writes every event to a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from flmarket_sim.eventlog import Log, ParquetLog
from flmarket_sim.eventlog.parquet_log import ADVICE
from flmarket_sim.eventlog.round_log import RoundLog
from flmarket_sim.eventlog.run import Run
from flmarket_sim.eventlog.run_info import identity
from flmarket_sim.learning.arrays_data import arrays_of_run
from flmarket_sim.learning.buyer_model import create_model
from flmarket_sim.learning.dataset import Dataset, read_data
from flmarket_sim.market.behaviour_cast import behaviour_labels
from flmarket_sim.market.broker import Broker
from flmarket_sim.market.buyer import Buyer
from flmarket_sim.market.cheat_cast import cheat_labels
from flmarket_sim.market.checkpoint import Checkpoint, Checkpoints, read_checkpoint, restore
from flmarket_sim.market.collector import few_collections
from flmarket_sim.market.interrupts import interrupts_between_rounds, run_events
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.mail import failing
from flmarket_sim.market.market_warnings import run_warnings
from flmarket_sim.market.model_keeper import ModelKeeper, keep_first_models
from flmarket_sim.market.provenance import MIXED, origin
from flmarket_sim.market.run_folder import Findings, RunFolder
from flmarket_sim.market.world import World, randomisers
from flmarket_sim.market.yardsticks import yardsticks
from flmarket_sim.owners.population import create_population, named_families
from flmarket_sim.perturbation.perturbation import delta_of
from flmarket_sim.randomness import Streams
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import disk_error

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


def run(
    scenario: Scenario,
    out: str | os.PathLike[str],
    progress: Progress | None = None,
    data: Dataset | None = None,
    force: bool = False,
) -> Run:
    """Simulates a scenario into the new or empty directory `out`.

    `progress(done, total)` is called after every round of every buyer. `data` is the scenario's
    data set if it is loaded already. `force` replaces a run in `out` that failed or was stopped.
    """
    randomisers(scenario, Streams(scenario.seed))  # refuses noise that is not there
    folder = RunFolder.create(Path(out), scenario, force)
    try:
        with few_collections():
            return _carry_out(folder, scenario, None, progress, data)
    finally:
        folder.close()


def resume(
    out: str | os.PathLike[str],
    progress: Progress | None = None,
    data: Dataset | None = None,
    mixed: bool = False,
) -> Run:
    """Continues a run that was stopped in any way, to the same bytes as without the stop.

    It starts from the run's checkpoint, or else from the beginning, and what was written before
    must come out the same. A finished run is only checked. A run on arrays needs the same `data`
    again; a run on the user's own files refuses to continue if these have changed. So does every
    run where weights, plug-ins, libraries or the kind of CPU are not those that began it; `mixed`
    goes on all the same, and run.json says so.
    """
    folder = RunFolder.reopen(Path(out))
    try:
        if folder.finished:
            folder.check_whole()
            folder.tidy()
            return Run(folder.path)
        scenario = folder.scenario(mixed)
        data = arrays_of_run(scenario, data, folder.path)
        folder.check_data_files(scenario)
        start = read_checkpoint(folder.path)
        folder.go_on(scenario, start, mixed)
        with few_collections():
            return _carry_out(folder, scenario, start, progress, data)
    finally:
        folder.close()


def _carry_out(
    folder: RunFolder,
    scenario: Scenario,
    start: Checkpoint | None,
    progress: Progress | None,
    data: Dataset | None,
) -> Run:
    buyers = tuple(buyer.name for buyer in scenario.resolved_buyers())
    families = named_families(scenario)
    labels, of = behaviour_labels(scenario), identity(folder.info)
    cheats = cheat_labels(scenario)
    log = ParquetLog(folder.path / "events", buyers, labels, families, of, cheats)
    models = ModelKeeper(folder.path, scenario)
    try:
        with threadpool_limits(limits=1, user_api="blas"):  # sums in one order on any machine
            world = build_world(scenario, log, data, 0.0 if start is None else start.facts.time)
            folder.write_owners(world.population, world.casts, scenario.log.records)
            log.files.add(folder.path / "owners.parquet")
            log.files.save()
            simulate(world, progress, Checkpoints(log, models, origin(folder.info)), start)
            found = yardsticks(scenario, world.data, world.population, world.notes)
        warnings = run_warnings(scenario, world.population, world.ledger)
        warnings += folder.info.get(MIXED, [])
        folder.finish(world.ledger, log, models, Findings(world.notes, warnings, found))
        return Run(folder.path)
    except BaseException as error:
        folder.stop(log, error, models)
        if isinstance(error, OSError):
            raise disk_error(folder.path, error, ADVICE) from error
        raise


def rounds_only(scenario: Scenario, data: Dataset | None = None) -> list[dict[str, Any]]:
    """Simulates without files. Returns the `round` events as they would be read from a log."""
    return rounds_and_world(scenario, data)[0]


def rounds_and_world(
    scenario: Scenario, data: Dataset | None = None
) -> tuple[list[dict[str, Any]], World]:
    """The same, and the world as it is at the end: who its owners are, and what they earned."""
    log = RoundLog(tuple(buyer.name for buyer in scenario.resolved_buyers()))
    with few_collections(), threadpool_limits(limits=1, user_api="blas"):
        world = build_world(scenario, log, data)
        simulate(world)
    return log.rounds(), world


def accuracy_yardsticks(
    scenario: Scenario, data: Dataset | None = None
) -> dict[str, dict[str, float | None]]:
    """What a run would have in run.json beside the accuracy of each buyer."""
    with threadpool_limits(limits=1, user_api="blas"):
        return yardsticks(scenario, data)


def build_world(
    scenario: Scenario, log: Log, data: Dataset | None = None, time: float = 0.0
) -> World:
    """Population, data, clock: the world before the first message."""
    streams = Streams(scenario.seed)
    learns = any(buyer.model.name != "none" for buyer in scenario.resolved_buyers())
    if learns and data is None:
        data = read_data(scenario)
    if learns and data is not None:
        data.check()
    population = create_population(scenario, streams, data if learns else None)
    delta = max(delta_of(one.perturbation) for one in randomisers(scenario, streams))
    watched = bool(scenario.owners.cheats) or scenario.check is not None
    ledger = Ledger(len(population), scenario.owners.lifetime_budget, delta, watched)
    return World(
        scenario,
        simpy.Environment(time),
        population,
        streams,
        log,
        ledger,
        data if learns else None,
    )


def simulate(
    world: World,
    progress: Progress | None = None,
    checkpoints: Checkpoints | None = None,
    start: Checkpoint | None = None,
) -> None:
    """Starts every buyer, from the checkpoint `start` if there is one, and runs to the end.

    Models are kept where checkpoints are: a market without files has neither.
    """
    specs, buyers = world.scenario.resolved_buyers(), list[Buyer]()
    models = None if checkpoints is None else checkpoints.models
    total = len(specs) * world.scenario.rounds
    ended = False

    def after_round(buyer: Buyer, gradient: Floats | None) -> None:
        """Writes what is due. After an error it writes nothing more, although SimPy still runs the
        other events of the same moment."""
        nonlocal ended
        keeps = models is not None and models.due(buyer.index, buyer.done)
        if ended or ((world.log.due or keeps) and failing(world.env)):
            return
        try:
            if keeps and models is not None and (learner := buyer.learner) is not None:
                kept = (learner.parameters, gradient, learner.average)
                models.keep(buyer.index, buyer.done, *kept)
            world.log.flush()
            world.ledger.settle()
            stop = interrupts.at_end_of_round()
            if checkpoints is not None:
                checkpoints.after_round(world, buyers, now=stop)
            if progress is not None:
                progress(sum(buyer.done for buyer in buyers), total)
            if stop:
                raise KeyboardInterrupt
        except BaseException as error:
            ended = True
            if isinstance(error, KeyboardInterrupt):
                world.log.note()
            raise

    for index, spec in enumerate(specs):
        model = None
        if spec.model.name != "none" and world.data is not None:
            model = create_model(spec.model, world.data, world.streams, index)
        buyers.append(
            Buyer(world, index, spec, model, Broker(world, index, spec, model), after_round)
        )
    if start is not None and checkpoints is not None:
        restore(start, world, buyers, checkpoints)
    elif models is not None:
        keep_first_models(models, [buyer.parameters for buyer in buyers])
    for buyer in buyers:
        world.env.process(buyer.buy())
    with interrupts_between_rounds() as interrupts:
        run_events(world.env, interrupts)
    world.ledger.settle()
