"""Flower's simulation engine in this process: its in-memory Grid and its message loop.

The engine hands messages to a backend. The one that comes with Flower starts a cluster of Ray; here
threads of this process answer, which is enough for a first try and for tests, and needs no Ray.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from flmarket_sim.flower.library import flower

THREADS = 4  # that answer messages


def run_in_process(
    server: Callable[[Any], None], client: Any, clients: int, threads: int = THREADS
) -> None:
    """Calls `server(grid)` while a ClientApp answers for so many nodes.

    Each node has its number as "partition-id" in the settings of its context. An error of the
    server is raised here.
    """
    grid, stop, engine = _engine(client, clients, threads)
    loop = threading.Thread(target=engine, daemon=True)
    loop.start()
    try:
        server(grid)
    finally:
        stop.set()
        loop.join()


def _engine(client: Any, clients: int, threads: int) -> tuple[Any, threading.Event, Any]:
    """The Grid, the event that stops the engine, and its message loop."""
    entry = flower("flwr.simulation.run_simulation")  # what Flower itself makes an engine of
    engine = flower("flwr.server.superlink.fleet.vce.vce_api")
    states = entry.LinkStateFactory(
        entry.FLWR_IN_MEMORY_DB_NAME, entry.NoOpFederationManager(), entry.ObjectStoreFactory()
    )
    run = _register(entry, states.state())
    grid = entry.InMemoryGrid(state_factory=states, pull_interval=0.01)
    grid.set_run(run)
    nodes = engine._register_nodes(clients, states)
    stores = engine._register_node_info_stores(nodes, run)
    stop = threading.Event()

    def loop() -> None:
        backend, metrics = _threads(client, threads), entry.VceMetrics()
        engine.run_api(lambda: client, backend, nodes, states, stores, stop, metrics)

    return grid, stop, loop


def _register(entry: Any, state: Any) -> Any:
    """A run of Flower, known to the state behind a Grid as the engine's entry makes it known."""
    drawn = entry.generate_rand_int_from_bytes
    run = entry.Run.create_empty(run_id=drawn(entry.RUN_ID_NUM_BYTES))
    run.primary_task_id = drawn(entry.TASK_ID_NUM_BYTES)
    run.federation_id = entry.NOOP_FEDERATION_ID
    identity = entry.TaskIdentity
    identity.task_id, identity.run_id = 1, run.run_id
    identity.node_id = entry.SUPERLINK_NODE_ID
    state.run_ids[run.run_id] = entry.RunRecord(run=run)
    state.task_store[run.primary_task_id] = entry.Task(
        task_id=run.primary_task_id, run_id=run.run_id
    )
    return run


def _threads(client: Any, count: int) -> Callable[[], Any]:
    """A backend of the engine that answers in the engine's own threads."""
    base = flower("flwr.server.superlink.fleet.vce.backend").Backend

    class Threads(base):  # type: ignore[misc,valid-type]
        """Answers a message where it arrives."""

        def __init__(self) -> None:
            super().__init__({})

        def build(self, app_fn: Callable[[], Any]) -> None:
            """There is nothing to build."""

        @property
        def num_workers(self) -> int:
            return count

        def is_worker_idle(self) -> bool:
            return True

        def process_message(self, message: Any, context: Any) -> tuple[Any, Any]:
            return client(message, context), context

        def terminate(self) -> None:
            """There is nothing to end."""

    return Threads
