"""The paper's results again: the scenario of each result, and the findings of all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.experiments.store import FileStore
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.paper.paper_market import PUBLISHED
from flmarket_sim.paper.published_files import missing_files
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.scenario.part import Plugin
from flmarket_sim.scenario.scenario_file import load_scenario
from flmarket_sim.scenario.shipped import scenario_path
from flmarket_sim.studies.study import Finding, Progress, Row
from flmarket_sim.studies.study_run import TASKS, find_out, study_of

RESULTS = {  # with the numbers and captions of the paper's figures and of its table
    "error-bound": "Figure 6: Effect of financial budget on error bound (RQ1)",
    "invalid-gradients": "Figure 7: Invalid gradient rate (RQ1)",
    "aggregation": "Figure 6 again: OptAggr against ConvlAggr (RQ2)",
    "accuracy": "Figure 8: Model accuracy over FL training rounds (RQ1, RQ2)",
    "levels": "Figure 9: Effect of parameter M (RQ4)",
    "guarantees": "Table I: Violation degrees of truthfulness and IR (RQ3)",
    "surplus": "What the paper leaves out: where the money goes",
}
WITH_PUBLISHED = {  # studies that the authors' weights take part in, where they are at hand
    "error-by-budget": ("published-regretnet", "published-m-regretnet", "published-dm-regretnet"),
    "accuracy": ("published-regretnet", "published-m-regretnet", "published-dm-regretnet"),
    "guarantees": ("published-dm-regretnet", "published-m-regretnet", "published-regretnet"),
    "levels": (),  # its own instances of M-RegretNet
}


@dataclass(frozen=True)
class Reproduced:
    """A result of the paper, made again; `seconds` is the time that this call took."""

    name: str
    scenario: Scenario
    finding: Finding
    seconds: float
    quick: bool


def chosen(names: Sequence[str]) -> list[str]:
    """The requested results; 'all' names every result."""
    if list(names) == ["all"]:
        return list(RESULTS)
    for name in names:
        if name not in RESULTS:
            raise InputError(
                f"there is no result {name!r} to reproduce; choose from {', '.join(RESULTS)}, "
                "or all"
            )
    return list(dict.fromkeys(names))


def experiment(
    name: str, quick: bool, authors: Path | None = None, overrides: Sequence[str] = ()
) -> Scenario:
    """The scenario of a result.

    With `quick`, the smaller options in its table study.quick replace the others, except those
    that an override sets.
    """
    scenario = load_scenario(scenario_path(f"paper/{name}"), overrides)
    study = scenario.study
    if study is None:
        raise InputError(
            f"the scenario of {name!r} has no [study] table any more; an `override` must leave "
            "it there"
        )
    options = study.options
    smaller = options.pop("quick", None) or {}
    set_by_hand = {setting.partition("=")[0].strip() for setting in overrides}
    options |= {
        key: value for key, value in smaller.items() if quick and f"study.{key}" not in set_by_hand
    }
    if authors is not None and study.name in WITH_PUBLISHED:
        options["authors"] = str(authors)
        if more := WITH_PUBLISHED[study.name]:
            options["auctions"] = [*options["auctions"], *more]
    return scenario.model_copy(update={"study": Plugin(name=study.name, **options)})


def reproduce(
    names: Sequence[str],
    folder: Path,
    *,
    quick: bool,
    crew: Crew | None = None,
    authors: Path | None = None,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
) -> tuple[list[Reproduced], dict[str, str]]:
    """Makes the results one after another; the store in `folder` keeps every finished task.

    The second value names the results that failed, with the reason: one missing data set does not
    stop the other results. What a folder of the authors' weights lacks is left out.
    """
    if authors is not None:
        missing_files(authors)
    experiments = {name: experiment(name, quick, authors, overrides) for name in names}
    for scenario in experiments.values():
        study_of(scenario)
    done, failed = [], {}
    with FileStore(folder / TASKS, list[Row]) as store:
        for name, scenario in experiments.items():
            began = time.perf_counter()
            try:
                finding = find_out(scenario, crew=crew, store=store, progress=progress)
            except FlmarketError as error:
                failed[name] = str(error)
                continue
            done.append(Reproduced(name, scenario, finding, time.perf_counter() - began, quick))
    return done, failed


def plain(auction: str) -> str:
    """An auction's name for people; published weights are named after it."""
    name = auction.removeprefix(PUBLISHED)
    return name if name == auction else f"{name} (published weights)"
