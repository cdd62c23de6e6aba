"""What an audit found against an auction: sentences, and small markets that can be read."""

from __future__ import annotations

from typing import Any

from flmarket_sim.results.result import ResultPart
from flmarket_sim.testing import AuditReport, Counterexample, Verdict


def evidence(report: AuditReport, subject: str = "") -> list[ResultPart]:
    """A part for each property that does not hold; `subject` stands before its sentence.

    Those about refuted promises, and about what owners can gain by lying, have a small market and
    come first.
    """
    failures = [verdict for verdict in report.verdicts if verdict.held is False]
    failures.sort(key=lambda verdict: not _worth_a_market(verdict))
    return [_part(verdict, subject) for verdict in failures]


def _part(verdict: Verdict, subject: str) -> ResultPart:
    sentence, example = f"{subject}{verdict.sentence()}", verdict.counterexample
    if example is None:
        return ResultPart((), title=sentence, notes=[verdict.note])
    if not _worth_a_market(verdict):
        return ResultPart((), title=sentence, notes=[example.story])
    return ResultPart(
        owner_rows(example), title=f"{sentence}\n{example.caption()}", notes=[example.story]
    )


def _worth_a_market(verdict: Verdict) -> bool:
    return verdict.failed or verdict.name == "truthful"


def owner_rows(example: Counterexample) -> list[dict[str, Any]]:
    """The owners of a small market: who they are, and what each sells for how much money."""
    rows = []
    for cells in example.rows():
        named = dict(zip(example.headings(), cells, strict=True))
        row: dict[str, Any] = {key: cell for key, cell in named.items() if ": " not in key}
        for label in dict.fromkeys(key.partition(": ")[0] for key in named if ": " in key):
            row[f"{label}: sells"] = f"{named[f'{label}: sells']} for {named[f'{label}: paid']}"
        rows.append(row)
    return rows
