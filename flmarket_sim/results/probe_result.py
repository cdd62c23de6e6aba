"""`fm.probe`: what owners gain by misreports, under one auction or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from flmarket_sim.auctions import auction_in, named
from flmarket_sim.auctions.auction import check_budget
from flmarket_sim.auctions.learned.regime import regime_note
from flmarket_sim.errors import InputError
from flmarket_sim.experiments.engine import Progress
from flmarket_sim.owners.population import draw_markets
from flmarket_sim.perturbation.scenario_error import error_settings
from flmarket_sim.report import certified_table, probe_tables
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.results.arguments import AnyScenario, Budgets, budget_factors, scenario_from
from flmarket_sim.results.given_auctions import AnyAuction, given_auctions
from flmarket_sim.results.market_differences import InOneMarket, difference_rows, differences_part
from flmarket_sim.results.performing import Perform, in_python, shown_progress
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.strategy.certified.box_search import BoxEffort
from flmarket_sim.strategy.certified.certified_gain import CertifiedGain, certified_gain
from flmarket_sim.strategy.misreports import Floats
from flmarket_sim.strategy.probe import Probe
from flmarket_sim.strategy.probe_file import table as owner_table
from flmarket_sim.strategy.probe_file import write_probe
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.studies.probe_tasks import merged_probe, probe_tasks, search_markets
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.result_table import ResultTable

LOWER_BOUND = "A lower bound: these are the best lies that were found, not the best that there are."
ENDS = {"": "mean", "_low": "low", "_high": "high"}


def probe(
    auctions: AnyAuction | Sequence[AnyAuction],
    scenario: AnyScenario,
    *,
    profiles: int = 500,
    budgets: Budgets = None,
    effort: str = "standard",
    seed: int = 0,
    certify: bool = False,
    nodes: int = 2_000,
    compare: str | None = None,
    workers: int = 1,
    progress: Progress | None = None,
    perform: Perform | None = None,
    **changes: Any,
) -> ProbeResult:
    """Searches for the best misreport of every owner: a lower bound on what manipulation gains.

    Parameters
    ----------
    auctions
        One auction or several: names, `NAME@WEIGHTS`, `module:Class`, classes or objects. Classes
        and objects stay in this process.
    scenario
        The market that profiles are drawn from: a file, the name of a shipped scenario, or a
        Scenario. Other keywords change its values: `owners__count=50`.
    profiles
        Markets, at each budget factor if several are given.
    budgets
        Budget factors: "low:high:step", one number, several numbers, or None for factors drawn
        from [0.1, 2].
    effort
        "quick", "standard" or "exhaustive".
    certify, nodes
        Whether to prove an upper bound of every gain, too, and how many boxes of reports to bound
        for an owner.
    compare
        The auction that `differences` compares the others with; by default the first.
    workers, progress
        Processes to use, and a function that is called with (tasks done, tasks in all).
    perform
        Does the tasks in place of `workers` and `progress`.

    `fm.strategy.probe` is the same search for given arrays of owners and budgets.
    """
    effort_of(effort)
    with given_auctions(auctions) as given:
        mechanisms = {name: named(name) for name in given.names}
        base = given.name_of(compare) if compare is not None else given.names[0]
        market = scenario_from(scenario, changes)
        levels, counted = market.market.levels, error_settings(market)
        notes = dict.fromkeys(regime_note(each, counted.error()) for each in mechanisms.values())
        drawn = budget_factors(budgets)
        truth, factor = draw_markets(market, profiles, drawn, seed)
        money = check_budget(truth.bids(levels), factor * truth.total_value())
        tasks = {
            name: probe_tasks(
                name, truth, money, seed=seed, effort=effort, levels=levels, error=counted
            )
            for name in mechanisms
        }
        every = [task for part in tasks.values() for task in part]
        run = perform or in_python(workers, progress, given.travel)
        results = iter(run("probe", every, search_markets, "chunks of markets"))
        probes, proved, facts = {}, {}, {}
        for name, mechanism in mechanisms.items():
            label = given.labels[name]
            found = [next(results) for _ in tasks[name]]
            probes[label] = merged_probe(
                name, truth, money, found, seed=seed, levels=levels, error=counted
            )
            facts[label] = {
                "auction": name if given.travel else label,
                "scenario": market.name,
                "scenario_sha256": market.digest(),
                "effort": effort,
            }
            if certify:
                there = auction_in(mechanism, counted.error())
                with shown_progress("certify", "owners", progress) as report:
                    proved[label] = certified_gain(
                        there, truth, money, levels=levels, effort=BoxEffort(nodes=nodes),
                        known=probes[label].best_utility, seed=seed, progress=report,
                    )  # fmt: skip
        return ProbeResult(
            probes,
            given.labels[base],
            None if drawn is None else factor,
            facts,
            proved,
            [note for note in notes if note is not None],
        )


@dataclass(frozen=True, repr=False)
class ProbeResult(Result):
    """The best misreports that were found, for every owner of every market.

    probes       a Probe for each auction, by its label
    base         the auction that `differences` compares the others with
    factor       (K,) the budget factors that were asked for; None if they were drawn
    facts        auction, scenario and effort of each probe
    certified    upper bounds of all gains, by label, if they were asked for
    """

    probes: dict[str, Probe]
    base: str
    factor: Floats | None
    facts: dict[str, dict[str, Any]]
    certified: dict[str, CertifiedGain]
    notes: list[str]

    @property
    def owners(self) -> ResultTable:
        """One row an owner with her best misreport, for each auction."""
        import pyarrow as pa

        parts = []
        for label, probe in self.probes.items():
            part = owner_table(probe)
            parts.append(part.add_column(0, "auction", pa.array([label] * len(part))))
        return ResultTable(pa.concat_tables([part.replace_schema_metadata() for part in parts]))

    @cached_property
    def table(self) -> ResultTable:
        return ResultTable.of(
            [row for label, probe in self.probes.items() for row in self._rows(label, probe)]
        )

    @cached_property
    def differences(self) -> ResultTable:
        """Mean gain / cost less that of the first auction (or `compare`) in the same markets."""
        gains = {
            label: InOneMarket(label, probe.relative_gain.mean(axis=1), {})
            for label, probe in self.probes.items()
        }
        pairs = [(gains[self.base], gains[label]) for label in gains if label != self.base]
        return ResultTable.of(difference_rows(pairs, self._first.truth.population))

    @property
    def title(self) -> str:
        markets, owners = self._first.truth.shape
        return (
            f"{', '.join(self.probes)}: what owners can gain by lying, one at a time, in "
            f"{markets:,} markets of {owners}"
        )

    @property
    def sentences(self) -> list[str]:
        proofs = dict.fromkeys(proof.method for proof in self.certified.values())
        return [LOWER_BOUND, *(certified_table.ARGUMENTS[method] for method in proofs), *self.notes]

    def parts(self) -> list[ResultPart]:
        several = len(self.probes) > 1
        rows = []
        for row in self.rows:
            line = {"auction": row["auction"]} if several else {}
            line |= {"owners": row["owners"], "number": row["number"]}
            line |= {f"mean gain / cost{end}": row[f"gain_over_cost{end}"] for end in ENDS}
            line["gain > 1 %"] = f"{row['share_gaining']:.0%}"
            if self.certified:
                line["certified"] = row["certified"]
                share = row["certified_at_most_one_per_cent"]
                line["at most 1 %"] = "" if share is None else f"{share:.0%}"
            rows.append(line)
        lies = [
            _lies_part(probe, f"{label}: " if several else "")
            for label, probe in self.probes.items()
        ]
        return [
            ResultPart(rows),
            *differences_part(self.differences.rows, "mean gain / cost"),
            *lies,
        ]

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """Mean gain / cost by budget factor if there are several, else by family of valuations."""
        label = "mean gain / cost of the best lie found"
        by_budget = [row for row in self.rows if row["budget_factor"] is not None]
        if by_budget:
            axis = "budget / value of everything for sale"
            return by_budget, Plot("budget_factor", "gain_over_cost", "auction", axis, label)
        return self.rows, Plot("owners", "gain_over_cost", "auction", "owners", label, bars=True)

    def save(self, path: str | os.PathLike[str], style: FigureStyle = SCREEN) -> Path:
        """Writes the result; the suffix says what, as in every result.

        One exception: .parquet holds the best misreport of every owner, from which reports are made
        and lies are played again. Such a file has one auction.
        """
        place = Path(path)
        if place.suffix.lower() != ".parquet":
            return super().save(place, style)
        if len(self.probes) > 1:
            raise InputError(
                f"{place} cannot be written: a Parquet file holds the probe of one auction, and "
                f"there are {len(self.probes)}. Choose .csv, or probe each auction on its own"
            )
        ((label, probe),) = self.probes.items()
        return write_probe(probe, place, self.facts[label])

    def as_json(self) -> Any:
        """The numbers of one auction, or a list of them for several."""
        shown = [self._facts_of(label, probe) for label, probe in self.probes.items()]
        if len(shown) == 1:
            return shown[0]
        less = {row["auction"]: row for row in self.differences.rows}
        return [
            facts | {"difference": less.get(label)}
            for label, facts in zip(self.probes, shown, strict=True)
        ]

    @property
    def _first(self) -> Probe:
        return next(iter(self.probes.values()))

    def _facts_of(self, label: str, probe: Probe) -> dict[str, Any]:
        shown = self.facts[label] | probe_tables.summary(probe)
        if self.factor is not None:
            shown["by_budget"] = probe_tables.by_budget(probe, self.factor)
        shown["best_lies"] = probe_tables.best_lies(probe)
        if label in self.certified:
            shown["certified"] = certified_table.summary(probe, self.certified[label])
        return shown

    def _rows(self, label: str, probe: Probe) -> list[dict[str, Any]]:
        """All owners, those of each family, and those at each budget factor."""
        numbers = probe_tables.summary(probe)
        proof = self.certified.get(label)
        bounds = certified_table.summary(probe, proof)["by_family"] if proof is not None else {}
        share = numbers["share_gaining"]["mean"]
        groups = {"all": {"owners": probe.gain.size, "share_gaining": share} | _gain(numbers)}
        groups |= {name: row | _gain(row) for name, row in numbers["by_family"].items()}
        rows = [_row(label, name, row, bounds.get(name)) for name, row in groups.items()]
        by_budget = [] if self.factor is None else probe_tables.by_budget(probe, self.factor)
        if len(by_budget) > 1:
            for row in by_budget:
                factor, count = row["budget_factor"], row["markets"] * probe.truth.shape[1]
                made = _row(label, f"budget {factor:g}", row | _gain(row) | {"owners": count}, None)
                rows.append(made | {"budget_factor": factor})
        return rows


def _gain(numbers: dict[str, Any]) -> dict[str, float]:
    return {f"gain_over_cost{end}": numbers["gain_over_cost"][key] for end, key in ENDS.items()}


def _row(
    label: str, owners: str, numbers: dict[str, Any], bound: dict[str, float] | None
) -> dict[str, Any]:
    proved = bound or {}
    return {
        "auction": label,
        "owners": owners,
        "budget_factor": None,
        "number": numbers["owners"],
        **{f"gain_over_cost{end}": numbers[f"gain_over_cost{end}"] for end in ENDS},
        "share_gaining": numbers["share_gaining"],
        "certified": proved.get("certified"),
        "certified_largest_gap": proved.get("largest_gap"),
        "certified_at_most_one_per_cent": proved.get("at_most_one_per_cent"),
    }


def _lies_part(probe: Probe, subject: str) -> ResultPart:
    """The best lies in words."""
    numbers = probe_tables.summary(probe)
    if numbers["share_gaining"]["mean"] <= 0:
        return ResultPart((), title=f"{subject}no lie was found that pays.")
    false = ", ".join(
        f"{probe_tables.PARTS[part]} {share:.0%}" for part, share in numbers["false_parts"].items()
    )
    lies = [f"- {line}" for line in probe_tables.best_lies(probe)]
    return ResultPart(
        (),
        title=f"{subject}of the lies that pay, false was the {false} (a lie can be false in "
        "several parts). The best lies:",
        notes=lies,
    )
