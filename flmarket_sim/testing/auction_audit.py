"""The audit: all checks on one mechanism, against what it guarantees and what is claimed for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flmarket_sim.auctions.auction import claims_of
from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.plugins import registry
from flmarket_sim.randomness import Purpose, Streams
from flmarket_sim.strategy.search_effort import effort_of
from flmarket_sim.testing.auction_under_test import AuctionUnderTest
from flmarket_sim.testing.counterexample import Counterexample
from flmarket_sim.testing.obligations import obligations
from flmarket_sim.testing.promises import promises
from flmarket_sim.testing.property_check import Check, SearchResult
from flmarket_sim.testing.shrinking import ATTEMPTS, shrink
from flmarket_sim.testing.trial_markets import CLASSES, Markets, draw, playable_sizes
from flmarket_sim.threads import one_torch_thread

MARKETS = {"quick": 80, "standard": 320, "exhaustive": 640}  # of each class of owners
SHRUNK = 3  # cases of a violation that are made small; the smallest is shown
FEWER_ATTEMPTS = 150  # to make small what nobody promised
NOTABLE = 0.01
FIRST = ("contract", "deterministic")  # nothing else can be tried on an auction that breaks these
# Required of every auction, whatever it declares: the market stops at a violation.
BY_CONTRACT = ("budget_feasible",)

Progress = Callable[[int, int], None]


class CheckFailed(AssertionError):
    """An auction breaks a promise of its own, or of its publication. `report` has all verdicts."""

    def __init__(self, report: AuditReport) -> None:
        super().__init__(str(report))
        self.report = report


@dataclass(frozen=True)
class Verdict:
    """One property for one class of owners.

    promised     who promises it: "contract", "guarantee", "claim" (the publication's), or ""
                 (nobody)
    held         no violation was found; None if it was not checked
    markets      the number of markets that were tried
    worst, mean  violation in `unit`: the largest, and the mean over all owners (or markets) tried
    share        the share of them with a violation above 0.01
    """

    name: str
    statement: str
    owners: str
    promised: str
    held: bool | None
    markets: int = 0
    worst: float = 0.0
    mean: float = 0.0
    share: float = 0.0
    unit: str = ""
    note: str = ""
    counterexample: Counterexample | None = None

    @property
    def outcome(self) -> str:
        """The verdict in one or two words."""
        if self.held is None:
            return "not checked"
        if self.held:
            return "holds" if self.promised else "holds here"
        return "refuted" if self.promised else "fails"

    @property
    def failed(self) -> bool:
        return self.outcome == "refuted"

    def sentence(self) -> str:
        """The verdict as a sentence."""
        name = self.name.replace("_", " ")
        for_whom = f"{name}, {OWNERS[self.owners]}"
        if self.held is None:
            return f"{for_whom}: not checked, {self.note}"
        if self.held:
            return f"{for_whom}: no violation in {self.markets:,} markets"
        promise = {
            "contract": "The contract asks it",
            "guarantee": "The mechanism guarantees it",
            "claim": "Its publication claims it",
        }
        start = (
            f"{promise[self.promised]}, and it is refuted"
            if self.promised
            else "Not promised, and it does not hold"
        )
        size = ""
        if self.name == "truthful":
            size = (
                f": owners can gain {self.mean:.2g} {self.unit} on average, "
                f"{self.share:.0%} of them more than 1 %"
            )
        elif self.unit:
            size = f": by up to {self.worst:.3g} {self.unit}"
        return f"{for_whom}. {start}{size}."

    def as_dict(self) -> dict[str, Any]:
        shown = {key: value for key, value in vars(self).items() if key != "counterexample"}
        return shown | {
            "outcome": self.outcome,
            "counterexample": self.counterexample and self.counterexample.as_dict(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], check: Check) -> Verdict:
        """The verdict that `as_dict` describes, on a property of which `check` is the check."""
        example = data["counterexample"]
        fields = {key: value for key, value in data.items() if key != "outcome"}
        fields["counterexample"] = example and Counterexample.from_dict(example, check)
        return cls(**fields)


OWNERS = {
    "all": "all owners",
    "single-minded": "single-minded owners",
    "any": "owners of any valuation",
}


@dataclass(frozen=True)
class AuditReport:
    """All verdicts on one mechanism. `passed`: no promise was refuted, which is not a proof."""

    auction: str
    verdicts: tuple[Verdict, ...]
    sizes: tuple[int, ...]
    effort: str
    seed: int

    def __repr__(self) -> str:
        refuted = ", ".join(dict.fromkeys(verdict.name for verdict in self.refuted))
        outcome = f"refuted: {refuted}" if refuted else "nothing refuted"
        return f"<AuditReport on {self.auction}: {outcome}; {len(self.verdicts)} verdicts>"

    @property
    def passed(self) -> bool:
        return not any(verdict.failed for verdict in self.verdicts)

    @property
    def refuted(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.failed)

    def verdict(self, name: str, owners: str = "all") -> Verdict:
        """The verdict on a property, for the owners "all" (contract), "single-minded" or "any"."""
        for verdict in self.verdicts:
            if (verdict.name, verdict.owners) == (name, owners):
                return verdict
        known = ", ".join(f"{verdict.name}/{verdict.owners}" for verdict in self.verdicts)
        raise InputError(f"there is no verdict on {name!r} for {owners!r}; there are {known}")

    def __str__(self) -> str:
        """All refuted promises with their markets; one line if there are none."""
        if self.passed:
            return f"{self.auction}: nothing that it promises was refuted"
        parts = [
            f"{self.auction}: refuted: {', '.join(dict.fromkeys(v.name for v in self.refuted))}"
        ]
        for verdict in self.refuted:
            shown = [verdict.sentence()] + (
                [str(verdict.counterexample)] if verdict.counterexample else [verdict.note]
            )
            parts.append("\n".join(shown))
        return "\n\n".join(parts)

    def as_dict(self) -> dict[str, Any]:
        facts = {
            "auction": self.auction,
            "passed": self.passed,
            "effort": self.effort,
            "seed": self.seed,
        }
        return facts | {
            "owners_in_a_market": list(self.sizes),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
        }


def check_auction(
    auction: Any,
    *,
    effort: str = "quick",
    seed: int = 0,
    markets: int | None = None,
    only: Collection[str] = (),
    raise_on_failure: bool = True,
    progress: Progress | None = None,
) -> AuditReport:
    """Tries a mechanism on generated markets, `markets` of each class of owners.

    The mechanism is an instance, a class, a name or "module:Class". `only` names the properties to
    try, all by default; the contract and determinism are always tried.

    Raises `CheckFailed`, an AssertionError with readable counterexamples, if a property is refuted
    that the contract asks, the mechanism's `guarantees` promise or its `claims` say. A search that
    finds nothing proves nothing: the report says how much was tried.
    """
    made: Any = (
        registry.auctions.create(auction)
        if isinstance(auction, str)
        else auction()
        if isinstance(auction, type)
        else auction
    )
    audit = AuctionAudit(made, effort=effort, seed=seed, markets=markets, only=only)
    report = progress or (lambda done, total: None)
    report(0, len(audit.jobs))
    verdicts = audit.first_verdicts()
    broken = audit.broken(verdicts)
    for job in audit.later_jobs:
        report(len(verdicts), len(audit.jobs))
        verdicts.append(audit.not_checked(job, broken) if broken else audit.verdict(job))
    found = audit.report(verdicts)
    if raise_on_failure and not found.passed:
        raise CheckFailed(found)
    return found


@dataclass(frozen=True)
class AuditJob:
    """One check on one class of owners, and the markets to try."""

    check: Check
    owners: str
    samples: list[Markets]

    @property
    def name(self) -> str:
        return self.check.name


class AuctionAudit:
    """The jobs of an audit in their order, and the auction that they are done on."""

    def __init__(
        self,
        auction: Any,
        *,
        effort: str = "quick",
        seed: int = 0,
        markets: int | None = None,
        only: Collection[str] = (),
    ) -> None:
        effort_of(effort)
        count = MARKETS[effort] if markets is None else markets
        self.effort, self.seed = effort, seed
        self.subject = AuctionUnderTest(auction, seed)
        self.sizes = playable_sizes(self.subject.fresh().auction)
        if count < len(self.sizes):
            raise InputError(
                f"markets must be at least {len(self.sizes)}, one of each size, got {count}"
            )
        self.jobs = _jobs(seed, self.sizes, count, effort, only)

    @property
    def later_jobs(self) -> list[AuditJob]:
        """All jobs after those that an auction must pass before anything else can be tried."""
        return [job for job in self.jobs if job.name not in FIRST]

    def first_verdicts(self) -> list[Verdict]:
        """The verdicts on the contract and on determinism."""
        contract, *others = [job for job in self.jobs if job.name in FIRST]
        verdicts = [self.verdict(contract)]
        if verdicts[0].held:
            self.notice_draws()
        for job in others:
            broken = self.broken(verdicts)
            verdicts.append(self.not_checked(job, broken) if broken else self.verdict(job))
        return verdicts

    def notice_draws(self) -> None:
        """Notes whether the auction draws numbers in any of the markets."""
        for sample in self.jobs[0].samples:
            self.subject.notice(sample.bids(), sample.money)

    def broken(self, verdicts: list[Verdict]) -> str:
        """The first property that is refuted and without which nothing else can be tried."""
        return next((v.name for v in verdicts if v.name in FIRST and v.held is False), "")

    def verdict(self, job: AuditJob) -> Verdict:
        blank = self._blank(job)
        if job.name == "expected" and not self.subject.states_chances:
            return replace(blank, note="the auction has no `expected`")
        with one_torch_thread():
            return _tried(job.check, self.subject, job.samples, blank)

    def not_checked(self, job: AuditJob, broken: str) -> Verdict:
        note = f"{broken} is refuted, and nothing can be said before that is mended"
        return replace(self._blank(job), note=note)

    def report(self, verdicts: Sequence[Verdict]) -> AuditReport:
        return AuditReport(self.subject.name, tuple(verdicts), self.sizes, self.effort, self.seed)

    def _blank(self, job: AuditJob) -> Verdict:
        check = job.check
        promised = promised_by(self.subject.auction, check.name, job.owners)
        return Verdict(check.name, check.statement, job.owners, promised, None, unit=check.unit)


def _jobs(
    seed: int, sizes: tuple[int, ...], count: int, effort: str, only: Collection[str]
) -> list[AuditJob]:
    """Every check on every class of owners, obligations first, on markets drawn from the seed."""
    rng = Streams(seed).generator(Purpose.PROFILES)
    samples = {
        owners: [draw(owners, n, max(1, count // len(sizes)), rng) for n in sizes]
        for owners in CLASSES
    }
    every = [sample for part in samples.values() for sample in part]
    jobs = [AuditJob(check, "all", every) for check in obligations()]
    jobs += [
        AuditJob(check, owners, part)
        for check in promises(effort)
        for owners, part in samples.items()
    ]
    if unknown := set(only) - {job.name for job in jobs}:
        known = ", ".join(dict.fromkeys(job.name for job in jobs))
        raise InputError(f"there is no property {', '.join(sorted(unknown))}; known are {known}")
    return [job for job in jobs if not only or job.name in (*FIRST, *only)]


def promised_by(auction: Any, name: str, owners: str) -> str:
    """Who promises a property to owners of a class; "any" covers the single-minded."""
    if owners == "all" or name in BY_CONTRACT:
        return "contract"
    covering = ("any", "single-minded") if owners == "single-minded" else ("any",)
    if getattr(auction, "guarantees", {}).get(name) in covering:
        return "guarantee"
    return "claim" if claims_of(auction).get(name) in covering else ""


def _tried(
    check: Check, subject: AuctionUnderTest, samples: list[Markets], blank: Verdict
) -> Verdict:
    if check.name == "truthful" and subject.sampled:
        # Every report needs many draws, so markets of one size must suffice.
        samples = samples[-2:][:1]
    try:
        findings = [check.find(subject, sample) for sample in samples]
    except FlmarketError as error:
        return replace(blank, held=False, note=str(error))
    violation = np.concatenate([finding.violation.ravel() for finding in findings])
    shown = _smallest(check, subject, findings, ATTEMPTS if blank.promised else FEWER_ATTEMPTS)
    message = next((finding.message for finding in findings if finding.message), "")
    held = shown is None and not message and (subject.sampled or not violation.any())
    worst = float(violation.max()) or (shown.violation if shown else 0.0)
    return replace(
        blank,
        held=held,
        markets=sum(sample.shape[0] for sample in samples),
        worst=0.0 if held else worst,
        mean=0.0 if held else float(violation.mean()),
        share=0.0 if held else float((violation > NOTABLE).mean()),
        note=message,
        counterexample=shown,
    )


def _smallest(
    check: Check, subject: AuctionUnderTest, findings: list[SearchResult], attempts: int
) -> Counterexample | None:
    """The smallest of a few shrunk cases: the one with the fewest owners."""
    small: list[Counterexample] = []
    for finding in findings:  # markets of few owners first
        for case in finding.cases:
            if len(small) == SHRUNK:
                break
            if check.judge(subject, case).violation > 0:
                case = shrink(
                    lambda attempt: check.judge(subject, attempt).violation, case, attempts
                )
                small.append(Counterexample(check, case, check.judge(subject, case), subject.seed))
                break
    return min(small, key=lambda one: (one.case.n, -one.violation), default=None)
