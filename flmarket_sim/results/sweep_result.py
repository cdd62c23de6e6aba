"""`fm.sweep`: one scenario over axes and seeds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.engine import Progress
from flmarket_sim.experiments.worker_processes import Crew
from flmarket_sim.report import sweep_tables
from flmarket_sim.results.arguments import AnyScenario
from flmarket_sim.results.performing import crew_of, shown_progress
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.result_folders import result_folder
from flmarket_sim.studies.study import Plot
from flmarket_sim.sweep.sweep_plan import Plan, load_sweep, plan_sweep
from flmarket_sim.sweep.sweep_runs import run_sweep
from flmarket_sim.tables.result_table import ResultTable


def sweep(
    scenario: AnyScenario | Plan,
    out: str | os.PathLike[str] | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    zip: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Sequence[int] | None = None,
    keep_events: bool | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    crew: Crew | None = None,
    **changes: Any,
) -> SweepResult:
    """Runs a scenario over axes and seeds. The same call again continues a stopped sweep.

    Parameters
    ----------
    scenario
        A scenario file, the name of a shipped scenario, or a Scenario. Other keywords change its
        values: `rounds=10, owners__count=50`. A Plan of `fm.load_sweep` is taken as it is.
    out
        The directory of the sweep; by default `runs/sweep-NAME-HASH`, as on the command line.
    grid, zip, seeds, keep_events
        The table [sweep], if not that of the file: every combination of the values in `grid`, the
        values in `zip` side by side, and how many seeds (or which): `grid={"auction.name":
        ["all-in", "pay-as-bid"]}, seeds=8`.
    workers, progress
        Processes to use, and a function that is called with (runs done, runs in all).
    crew
        Does the runs in place of `workers`.
    """
    table = {"grid": grid, "zip": zip, "seeds": seeds, "keep_events": keep_events}
    given: dict[str, Any] = {
        f"sweep__{key}": value for key, value in table.items() if value is not None
    }
    if isinstance(scenario, Plan):
        if given or changes:
            raise InputError("a plan is run as it is; change the scenario that it was made from")
        plan = scenario
    elif isinstance(scenario, Scenario):
        plan = plan_sweep(scenario, **changes, **given)
    else:
        plan = load_sweep(scenario, **changes, **given)
    folder = Path(out) if out is not None else usual_folder(plan)
    doers = crew or crew_of(workers)
    with shown_progress(plan.name, "runs", progress) as report:
        summary = run_sweep(plan, folder, progress=report, crew=doers)
    return SweepResult(plan, summary, folder)


def usual_folder(plan: Plan) -> Path:
    """Where a sweep goes if nobody names a directory."""
    return result_folder(f"sweep-{plan.name}", plan.digest)


@dataclass(frozen=True, repr=False)
class SweepResult(Result):
    """All runs of a sweep. Its directory is `path`.

    `table` has a row for each run and buyer, `means` one for each combination of the axes.
    """

    plan: Plan
    summary: pa.Table
    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    @cached_property
    def table(self) -> ResultTable:
        return ResultTable(self.summary)

    @cached_property
    def means(self) -> ResultTable:
        """Means over the seeds with Student's 95 % intervals, for each combination and buyer."""
        return ResultTable.of(self._lines_of_means)

    @cached_property
    def _lines_of_means(self) -> list[dict[str, Any]]:
        return sweep_tables.means(self.summary, self.plan)

    @cached_property
    def differences(self) -> ResultTable | None:
        """Differences to the first value of the first axis of names, seed by seed.

        None without such an axis, or with a single seed. `fm.paired_differences` has more choice.
        """
        return None if self._compared is None else ResultTable.of(self._compared[1])

    @cached_property
    def _compared(self) -> tuple[str, list[dict[str, Any]]] | None:
        """The axis of names and the differences along it."""
        return sweep_tables.differences(self.summary, self.plan)

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return int(self.summary.column("outcome").to_pylist().count("failed"))

    @property
    def title(self) -> str:
        axes = ", ".join(axis.path for axis in self.plan.axes) or "no axis"
        wrong = f", {self.failed:,} failed" if self.failed else ""
        runs, seeds = f"{len(self.plan.runs):,} runs", f"{len(self.plan.seeds):,} seeds"
        return f"{self.plan.name}: {runs} over {axes} and {seeds}{wrong}, in {self.path}"

    @property
    def sentences(self) -> list[str]:
        said = ["Means over seeds with Student's 95 % intervals."]
        said += sweep_tables.accuracies_beside(self._lines_of_means)
        if self._compared is not None:
            said.append(
                "The second table has differences in the same worlds, seed by seed, averaged over "
                "the other axes."
            )
        return [*said, *sweep_tables.failures(self.summary)]

    def parts(self) -> list[ResultPart]:
        lines = self._lines_of_means
        shown = sweep_tables.shown_columns(lines, self.plan)
        parts = [ResultPart(sweep_tables.as_cells(lines, self.plan), shown)]
        if self._compared is not None:
            axis, rows = self._compared
            first = next(each.values[0] for each in self.plan.axes if each.path == axis)
            columns = [axis, "seeds", *sweep_tables.measured(lines)]
            parts.append(ResultPart(rows, columns, f"{axis} less {first}"))
        return parts

    @property
    def buyers(self) -> list[str]:
        """The names of the buyers whose runs finished."""
        return list(dict.fromkeys(row["buyer"] for row in self.rows if row["buyer"] is not None))

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """The first measure by the first axis, a line or bar for each value of the others."""
        if not self.plan.axes:
            raise InputError("a sweep without axes has no figure: it differs in seeds only")
        names = sweep_tables.measured(self._lines_of_means)
        if not names:
            raise InputError("no run finished, so there is nothing to draw")
        numbers = [axis for axis in self.plan.axes if _are_numbers(axis.values)]
        across = numbers[0] if numbers else self.plan.axes[0]
        others = [axis.path for axis in self.plan.axes if axis is not across]
        several = len(self.buyers) > 1
        rows = []
        for row in self._lines_of_means:
            parts = [str(row[path]) for path in others] + ([row["buyer"]] if several else [])
            rows.append(row | {"setting": ", ".join(parts) or self.plan.name})
        label = names[0].replace("_", " ")
        return rows, Plot(across.path, names[0], "setting", across.path, label, bars=not numbers)

    def as_json(self) -> dict[str, Any]:
        return {
            "directory": str(self.path),
            "runs": len(self.plan.runs),
            "failed": self.failed,
            "means": self._lines_of_means,
        }


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
