"""The places that `--cluster` can name.

A place is a scheduler's address, `local` for workers on this machine, or `slurm` for jobs.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

import dask
from distributed import Client, LocalCluster

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments.dask_crew import DaskCrew, Place
from flmarket_sim.experiments.dask_worker import processes_until_the_end
from flmarket_sim.experiments.worker_processes import Crew

ADDRESS = re.compile(r"((tcp|tls)://)?[^/\s]+:\d{1,5}")
CONNECT_SECONDS = 10.0
KEEP_UP_SECONDS = 20.0
PATIENCE = 300.0
LOOPBACK = "127.0.0.1:0"
NO_PAGES: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}


def crew_at(
    where: str,
    workers: int | None = None,
    options: Sequence[str] = (),
    patience: float = PATIENCE,
    say: Callable[[str], None] = lambda text: None,
) -> Crew:
    """The crew at `--cluster WHERE`. Nothing starts before the crew has tasks."""
    place: Callable[[], AbstractContextManager[Place]]
    if where == "slurm":
        place = partial(_slurm, workers or 1, parse_options(options))
    elif options:
        raise InputError(
            "`cluster_option` is for `cluster` slurm: a SLURM job has options, and you start other "
            "workers yourself"
        )
    elif where == "local":
        place = partial(_local, workers or 1)
    elif ADDRESS.fullmatch(where):
        if workers is not None:
            raise InputError(
                f"`workers` says how many to start; the workers at {where} are there already"
            )
        place = partial(_address, where)
    else:
        raise InputError(
            f"`cluster` {where}: name a scheduler's address (tcp://HOST:PORT), or local, or slurm"
        )
    return DaskCrew(place, patience, say)


def parse_options(options: Sequence[str]) -> dict[str, Any]:
    """A dict of KEY=VALUE texts. A value that is valid JSON is read as JSON, else as text."""
    parsed: dict[str, Any] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise InputError(f"`cluster_option` {option}: write KEY=VALUE, e.g. memory=8GB")
        try:
            parsed[key.strip().replace("-", "_")] = json.loads(value)
        except ValueError:
            parsed[key.strip().replace("-", "_")] = value
    return parsed


@contextmanager
def _address(address: str) -> Iterator[Place]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a worker with other versions is refused later
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        certificates = (
            "; tls:// needs certificates, see distributed.comm.tls in Dask's configuration"
            if "tls://" in address
            else ""
        )
        raise InputError(
            f"no scheduler answers at {address} ({type(error).__name__} within "
            f"{CONNECT_SECONDS:g} s{certificates}). Start one with `dask scheduler`, which prints "
            "its address; nothing was run"
        ) from None
    with client:
        yield Place(client, address, f"Start some: `dask worker {address} --nthreads 1`.")


@contextmanager
def _local(workers: int) -> Iterator[Place]:
    """Workers on this machine, which nobody else can reach (docs/decisions/0057).

    Scheduler and workers are threads of this process and talk inside of it: a worker runs nothing
    itself, and its tasks have processes of their own. Dask always opens ports for web pages; here
    they are on loopback and have no pages.
    """
    with dask.config.set(NO_PAGES):
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            protocol="inproc://",
            dashboard_address=LOOPBACK,
            worker_dashboard_address=LOOPBACK,
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
    with cluster, Client(cluster, set_as_default=False) as client, processes_until_the_end():
        yield Place(client, "this machine", "They should have started by now.")


@contextmanager
def _slurm(jobs: int, options: dict[str, Any]) -> Iterator[Place]:
    """Workers in SLURM jobs, one worker a job, with a thread for each of its cores.

    Lost jobs, such as those out of time, are submitted again.
    """
    cluster = slurm_cluster(options)
    kept_up = time.monotonic()

    def keep_up() -> None:
        nonlocal kept_up
        if time.monotonic() - kept_up > KEEP_UP_SECONDS:
            kept_up = time.monotonic()
            cluster.scale(jobs=jobs)

    try:
        try:
            cluster.sync(_submit, cluster, jobs)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise FlmarketError(
                f"the jobs could not be submitted: {reason}; nothing was run"
            ) from error
        with Client(cluster, set_as_default=False) as client:
            advice = (
                "Are the jobs still in the queue (`squeue --me`), or did they fail (log-directory "
                "in jobqueue.yaml)?"
            )
            yield Place(client, f"SLURM (scheduler {cluster.scheduler_address})", advice, keep_up)
    finally:
        # dask-jobqueue asserts that the jobs it closes exist
        with suppress(AssertionError, OSError, TimeoutError):
            cluster.close()


async def _submit(cluster: Any, jobs: int) -> None:
    """Submits the jobs. Awaiting the cluster raises an error if a job is refused."""
    cluster.scale(jobs=jobs)
    await cluster


def slurm_cluster(options: dict[str, Any]) -> Any:
    """A SLURMCluster with these options over the user's Dask configuration, without jobs yet."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise InputError(
            "`cluster` slurm needs dask-jobqueue: pip install 'flmarket-sim[cluster]'"
        ) from None
    if shutil.which("sbatch") is None:
        raise InputError(
            "`cluster` slurm needs `sbatch`, which is not on the PATH: run it on a machine that "
            "submits SLURM jobs"
        )
    section = options.get("config_name", "slurm")
    configured = dask.config.get(f"jobqueue.{section}.scheduler-options", {})
    try:
        scheduler = {"dashboard_address": None} | configured | options.get("scheduler_options", {})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SLURMCluster(**({"processes": 1} | options | {"scheduler_options": scheduler}))
    except (ValueError, TypeError, KeyError, OSError) as error:
        if "cores and memory" in str(error):
            raise InputError(
                "say how large a job is: `cluster_option` cores=8 `cluster_option` memory=16GB, or "
                "jobqueue.slurm.cores and .memory in ~/.config/dask/jobqueue.yaml"
            ) from None
        raise InputError(
            f"dask-jobqueue refuses these options: {str(error).splitlines()[0]}"
        ) from None
