"""The options that say where tasks run, shared by every command with many tasks.

A command takes the four options by their types below and passes them to `crew_from`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, get_origin, get_type_hints

import typer

from flmarket_sim.cli.output import cores, print_note, progress
from flmarket_sim.errors import InputError, Interrupted

if TYPE_CHECKING:
    from flmarket_sim.experiments.engine import SomeTask
    from flmarket_sim.experiments.worker_processes import Crew
    from flmarket_sim.results.performing import Perform

Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes; by default one a core. With --cluster slurm: jobs; by default one."
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|local|slurm", help="Run on Dask workers; docs/clusters.md says how."
    ),
]
ClusterOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster-option", metavar="KEY=VALUE", help="Option of a SLURM job, e.g. memory=8GB."
    ),
]
ClusterWait = Annotated[
    float, typer.Option(min=1.0, help="Seconds that a cluster may be without a worker.")
]


def crew_from(
    workers: int | None,
    cluster: str | None = None,
    cluster_options: list[str] | None = None,
    cluster_wait: float = 300.0,
    *,
    isolate: bool = False,
) -> Crew:
    """The crew that the options describe: processes of this machine, or Dask workers.

    A single worker is this process itself, unless `isolate` asks for a process that may die.
    Without a number of workers, processes start only once the work has taken some seconds.
    """
    if cluster is not None:
        return _dask_crew(cluster, workers, cluster_options or [], cluster_wait)
    if cluster_options:
        raise InputError("--cluster-option needs --cluster slurm")
    from flmarket_sim.experiments.worker_processes import GrowingCrew, Processes, local_crew

    if isolate:
        return Processes(workers or cores())
    return GrowingCrew(cores()) if workers is None else local_crew(workers)


def _dask_crew(where: str, workers: int | None, options: list[str], wait: float) -> Crew:
    try:
        from flmarket_sim.experiments.dask_places import crew_at
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "flmarket_sim":
            raise
        raise InputError(
            f"--cluster needs {error.name}, which is not here: pip install 'flmarket-sim[cluster]'"
        ) from None
    workers = cores() if where == "local" and workers is None else workers
    return crew_at(where, workers, options, wait, print_note)


@contextmanager
def before_any_result() -> Iterator[None]:
    """A block of a command that keeps its results once it has some (`task_results`).

    An interrupt that nobody inside has explained came before the first one.
    """
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted before the first result; nothing is kept, and the same command starts "
            "again"
        ) from None


@contextmanager
def task_results(
    name: str,
    tasks: Sequence[SomeTask],
    measure: Callable[[SomeTask], Any],
    crew: Crew,
    step: str = "tasks",
) -> Iterator[list[Any]]:
    """The results of all tasks, stored in runs/NAME-HASH until the block has printed them."""
    from flmarket_sim.experiments.engine import results_of
    from flmarket_sim.experiments.scratch_store import scratch_store

    with scratch_store(name, tasks, print_note, _kind_of_result(measure)) as store:
        with progress(name, step) as report:
            results = results_of(tasks, measure, crew=crew, store=store, progress=report)
        yield results


def _kind_of_result(measure: Callable[..., Any]) -> Any:
    """The type that a function says its results have, where JSON has such a type."""
    try:
        kind = get_type_hints(measure).get("return", Any)
    except Exception:  # a name that exists for type checkers only
        return Any
    return kind if get_origin(kind) in (dict, list) else Any


def performer(until: ExitStack, crew: Crew) -> Perform:
    """Does the tasks of a call with a crew. What is done stays on disk `until` all is printed."""

    def perform(
        name: str, tasks: Sequence[Any], measure: Callable[[Any], Any], step: str
    ) -> list[Any]:
        return until.enter_context(task_results(name, tasks, measure, crew, step))

    return perform
