"""The probe as tasks of the engine: each chunk of markets is a task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from flmarket_sim.auctions import auction_in, named
from flmarket_sim.experiments.content import array_contents, profile_contents
from flmarket_sim.experiments.task import task_key
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.stated_valuation import StatedValuations
from flmarket_sim.perturbation.scenario_error import COORDINATE, ErrorSettings
from flmarket_sim.strategy.misreports import Floats
from flmarket_sim.strategy.probe import Probe, ProbeChunk, merge_chunks, probe_chunks, search_chunk
from flmarket_sim.strategy.search import BestReports

PAPER = ErrorSettings(COORDINATE, 1.0)


@dataclass(frozen=True)
class ProbeTask:
    """The search for the best report of every owner in some markets of `auction`.

    The auction is a text, as in auctions/auction_name.py. `error` is what its market counts.
    """

    auction: str
    chunk: ProbeChunk
    effort: str
    levels: int
    error: ErrorSettings = PAPER

    @cached_property
    def key(self) -> str:
        chunk = self.chunk
        arrays = (profile_contents(chunk.truth), array_contents(chunk.budget))
        counted = self.error.as_dict()
        files = file_contents([self.auction, counted])
        facts = [self.auction, files, chunk.seed, self.effort, self.levels, counted]
        return task_key("probe", json.dumps(facts), *arrays)

    @property
    def label(self) -> str:
        return f"{self.auction}, markets {self.chunk.begin:,} to {self.chunk.end - 1:,}"


def probe_tasks(
    auction: str,
    truth: Profiles,
    budget: Floats,
    *,
    seed: int,
    effort: str,
    levels: int,
    error: ErrorSettings = PAPER,
) -> list[ProbeTask]:
    chunks = probe_chunks(truth, budget, seed)
    return [ProbeTask(auction, chunk, effort, levels, error) for chunk in chunks]


def search_markets(task: ProbeTask) -> dict[str, list[Any]]:
    """The columns of what the search found."""
    auction = auction_in(named(task.auction), task.error.error())
    found = search_chunk(auction, task.chunk, task.effort, task.levels)
    columns = {k: column.tolist() for k, column in vars(found).items() if k != "stated"}
    return columns | {
        "told_family": found.stated.names(),
        "told_scale": found.stated.scale.tolist(),
    }


def merged_probe(
    auction: str,
    truth: Profiles,
    budget: Floats,
    results: Sequence[dict[str, list[Any]]],
    *,
    seed: int,
    levels: int,
    error: ErrorSettings = PAPER,
) -> Probe:
    """The same probe as `strategy.probe` gives, bit for bit, from the results of all tasks."""
    found = [_found(columns) for columns in results]
    there = auction_in(named(auction), error.error())
    return merge_chunks(there, truth, budget, found, seed=seed, levels=levels)


def _found(columns: dict[str, list[Any]]) -> BestReports:
    numbers = {name: column for name, column in columns.items() if not name.startswith("told_")}
    arrays: dict[str, Any] = {name: np.array(column) for name, column in numbers.items()}
    arrays["stage"] = arrays["stage"].astype(np.int8)
    stated = StatedValuations.named(columns["told_family"], np.array(columns["told_scale"]))
    return BestReports(**arrays, stated=stated)
