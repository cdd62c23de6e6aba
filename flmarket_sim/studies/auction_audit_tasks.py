"""The audit of an auction as tasks of the engine: each property for each class of owners is a task.

The contract and determinism come first, in this process: nothing else can be tried on an auction
that breaks them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from flmarket_sim.auctions import named
from flmarket_sim.experiments.task import task_key
from flmarket_sim.market.named_files import file_contents
from flmarket_sim.testing.auction_audit import AuctionAudit, AuditJob, AuditReport, Verdict


@dataclass(frozen=True)
class CheckTask:
    """The check of one property for one class of owners. The auction is a text, as in a command."""

    auction: str
    effort: str
    seed: int
    markets: int | None
    name: str
    owners: str
    only: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return task_key("audit", json.dumps([asdict(self), file_contents(self.auction)]))

    @property
    def label(self) -> str:
        return f"{self.auction}, {self.name} for {self.owners} owners"

    def audit(self) -> AuctionAudit:
        auction = named(self.auction)
        return AuctionAudit(
            auction, effort=self.effort, seed=self.seed, markets=self.markets, only=self.only
        )


class AuditInTasks:
    """An audit after its first verdicts. `tasks` are the checks that remain."""

    def __init__(
        self, auction: str, effort: str, seed: int, markets: int | None, only: tuple[str, ...] = ()
    ) -> None:
        self.audit = AuctionAudit(
            named(auction), effort=effort, seed=seed, markets=markets, only=only
        )
        self.first = self.audit.first_verdicts()
        self.broken = self.audit.broken(self.first)
        later = [] if self.broken else self.audit.later_jobs
        self.tasks = [
            CheckTask(auction, effort, seed, markets, job.name, job.owners, only) for job in later
        ]

    def report(self, results: Sequence[dict[str, Any]]) -> AuditReport:
        """The report of the whole audit, from the results of all tasks."""
        later = self.audit.later_jobs
        if self.broken:
            verdicts = [self.audit.not_checked(job, self.broken) for job in later]
        else:
            verdicts = [
                Verdict.from_dict(result, job.check)
                for job, result in zip(later, results, strict=True)
            ]
        return self.audit.report([*self.first, *verdicts])


def check_property(task: CheckTask) -> dict[str, Any]:
    """The verdict of one task as plain data."""
    audit = task.audit()
    audit.notice_draws()
    return audit.verdict(_job(audit, task)).as_dict()


def _job(audit: AuctionAudit, task: CheckTask) -> AuditJob:
    wanted = (task.name, task.owners)
    return next(job for job in audit.jobs if (job.name, job.owners) == wanted)
