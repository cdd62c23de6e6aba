"""`fm.audit`: what auctions promise, and what a search finds against it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.experiments.engine import Progress
from flmarket_sim.results.audit_evidence import evidence
from flmarket_sim.results.given_auctions import AnyAuction, given_auctions
from flmarket_sim.results.performing import Perform, in_python
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.studies.auction_audit_tasks import AuditInTasks, check_property
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.result_table import ResultTable
from flmarket_sim.testing import AuditReport, Verdict

PROMISES = {"contract": "contract", "guarantee": "guaranteed", "claim": "claimed", "": "-"}
SHORT = {
    "budget_feasible": "budget feasible",
    "individually_rational": "ind. rational",
    "of her privacy budget": "of budget",
    "of the budget": "of money",
}


def audit(
    auctions: AnyAuction | Sequence[AnyAuction],
    *,
    effort: str = "quick",
    markets: int | None = None,
    only: Collection[str] = (),
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    perform: Perform | None = None,
) -> AuctionAuditResult:
    """Searches for small markets that refute the promises of auctions.

    Parameters
    ----------
    auctions
        One auction or several: names, `NAME@WEIGHTS`, `module:Class`, classes or objects. Classes
        and objects stay in this process.
    effort
        "quick", "standard" or "exhaustive".
    markets
        Markets of each class of owners, if not the effort's own number.
    only
        The properties to try, all by default. The contract is always tried.
    workers, progress
        Processes to use, and a function that is called with (checks done, checks in all).
    perform
        Does the tasks in place of `workers` and `progress`.
    """
    with given_auctions(auctions) as given:
        audits = {
            name: AuditInTasks(name, effort, seed, markets, tuple(only)) for name in given.names
        }
        tasks = [task for each in audits.values() for task in each.tasks]
        run = perform or in_python(workers, progress, given.travel)
        results = dict(zip(tasks, run("audit", tasks, check_property, "checks"), strict=True))
        reports = {
            given.labels[name]: each.report([results[task] for task in each.tasks])
            for name, each in audits.items()
        }
    return AuctionAuditResult(reports)


@dataclass(frozen=True, repr=False)
class AuctionAuditResult(Result):
    """Verdicts on what auctions promise. `reports` has an AuditReport for each auction."""

    reports: dict[str, AuditReport]

    @property
    def passed(self) -> bool:
        """Whether nothing that an auction promises was refuted, which is not a proof."""
        return all(report.passed for report in self.reports.values())

    @property
    def refuted(self) -> list[Verdict]:
        """The promises that were refuted, each with a small counterexample."""
        return [verdict for report in self.reports.values() for verdict in report.refuted]

    def verdict(self, name: str, owners: str = "all", auction: str | None = None) -> Verdict:
        """The verdict on a property, for the owners "all" (contract), "single-minded" or "any"."""
        chosen = next(iter(self.reports)) if auction is None else auction
        if chosen not in self.reports:
            raise InputError(
                f"{chosen!r} is not among the audited auctions: {', '.join(self.reports)}"
            )
        return self.reports[chosen].verdict(name, owners)

    @cached_property
    def table(self) -> ResultTable:
        columns = ("owners", "promised", "outcome", "markets", "worst", "mean", "share", "unit")
        return ResultTable.of(
            [
                {"auction": label, "property": verdict.name}
                | {key: getattr(verdict, key) for key in columns}
                | {"sentence": verdict.sentence(), "story": _story(verdict)}
                for label, report in self.reports.items()
                for verdict in report.verdicts
            ]
        )

    @property
    def title(self) -> str:
        first = next(iter(self.reports.values()))
        names = ", ".join(self.reports)
        sizes = first.sizes
        several = "" if len(sizes) == 1 else f" to {sizes[-1]}"
        return f"{names}: audited in markets of {sizes[0]}{several} owners, effort {first.effort}"

    @property
    def sentences(self) -> list[str]:
        return [_conclusion(label, report) for label, report in self.reports.items()]

    def parts(self) -> list[ResultPart]:
        """The contract, the promises by class of owners, and what was found against them."""
        if len(self.reports) > 1:
            return [self._side_by_side(), *self._evidence()]
        (report,) = self.reports.values()
        return [*_verdict_parts(report), *self._evidence()]

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """The largest violation that was found, by property and auction; 0 where there is none."""
        rows = [
            {
                "auction": label,
                "property": f"{SHORT.get(verdict.name, verdict.name)}, {verdict.owners}",
                "worst": verdict.worst,
            }
            for label, report in self.reports.items()
            for verdict in report.verdicts
            if verdict.owners != "all"
        ]
        return rows, Plot("property", "worst", "auction", "", "largest violation found", bars=True)

    def as_json(self) -> Any:
        """The report of one auction, or a list of reports of several."""
        reports = [report.as_dict() | {"auction": label} for label, report in self.reports.items()]
        return reports[0] if len(reports) == 1 else reports

    def _side_by_side(self) -> ResultPart:
        keys = dict.fromkeys(
            (verdict.name, verdict.owners)
            for report in self.reports.values()
            for verdict in report.verdicts
        )
        rows = []
        for name, owners in keys:
            row = {"property": SHORT.get(name, name), "owners": owners}
            for label, report in self.reports.items():
                verdict = report.verdict(name, owners)
                said = f" ({PROMISES[verdict.promised]})" if verdict.promised else ""
                row[label] = verdict.outcome + (said if owners != "all" else "")
            rows.append(row)
        return ResultPart(rows)

    def _evidence(self) -> list[ResultPart]:
        several = len(self.reports) > 1
        return [
            part
            for label, report in self.reports.items()
            for part in evidence(report, f"{label}: " if several else "")
        ]


def _verdict_parts(report: AuditReport) -> list[ResultPart]:
    contract: list[dict[str, Any]] = []
    promised: list[dict[str, Any]] = []
    for verdict in report.verdicts:
        markets = verdict.markets if verdict.held is not None else None
        found: dict[str, Any] = {"found": verdict.outcome, "markets": markets}
        if verdict.owners == "all":
            asked: dict[str, Any] = {
                "the contract asks": verdict.name,
                "that is": verdict.statement,
            }
            contract.append(asked | found)
            continue
        unit = SHORT.get(verdict.unit, verdict.unit)
        worst = f"{verdict.worst:.3g} {unit}" if verdict.held is False else ""
        name = SHORT.get(verdict.name, verdict.name)
        said: dict[str, Any] = {
            "property": name,
            "owners": verdict.owners,
            "said": PROMISES[verdict.promised],
        }
        promised.append(said | found | {"worst": worst})
    parts = [ResultPart(promised)] if promised else []
    return [*parts, ResultPart(contract, ("the contract asks", "found", "markets", "that is"))]


def _conclusion(label: str, report: AuditReport) -> str:
    if report.passed:
        return f"{label} passed: nothing that it promises was refuted (which is not a proof)."
    names = ", ".join(dict.fromkeys(verdict.name.replace("_", " ") for verdict in report.refuted))
    return f"{label} failed. Refuted: {names}."


def _story(verdict: Verdict) -> str:
    return verdict.counterexample.story if verdict.counterexample else verdict.note
