"""An audit for people: a table of verdicts, then small markets.

The markets show what was refuted and what else owners can gain.
"""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from flmarket_sim.testing import AuditReport, Counterexample, Verdict

PROMISES = {"contract": "contract", "guarantee": "guaranteed", "claim": "claimed", "": "-"}
SHORT = {
    "budget_feasible": "budget feasible",
    "individually_rational": "ind. rational",
    "of her privacy budget": "of budget",
    "of the budget": "of money",
}
STYLES = {
    "holds": "green",
    "refuted": "bold red",
    "fails": "yellow",
    "holds here": "",
    "not checked": "dim",
}


def render(name: str, report: AuditReport) -> RenderableType:
    """For a terminal of 80 columns."""
    sizes = (
        f"{report.sizes[0]}"
        if len(report.sizes) == 1
        else f"{report.sizes[0]} to {report.sizes[-1]}"
    )
    parts: list[RenderableType] = [
        Text(f"{name}: audited in markets of {sizes} owners, effort {report.effort}"),
        *tables(report),
    ]
    failures = [verdict for verdict in report.verdicts if verdict.held is False]
    parts += [_refutation(verdict) for verdict in failures if _worth_a_market(verdict)]
    for verdict in failures:
        if _worth_a_market(verdict):
            continue
        parts.append(Text(verdict.sentence(), style="yellow"))
        parts.append(
            Padding(
                Text(verdict.counterexample.story if verdict.counterexample else verdict.note),
                (0, 0, 1, 2),
            )
        )
    if report.passed:
        parts.append(Text("Passed: nothing that it promises was refuted (which is not a proof)."))
    else:
        names = ", ".join(dict.fromkeys(v.name.replace("_", " ") for v in report.refuted))
        parts.append(Text(f"Failed. Refuted: {names}.", style="bold red"))
    return Group(*parts)


def _worth_a_market(verdict: Verdict) -> bool:
    """Markets are printed for what is refuted, and for what owners can gain by lying."""
    return verdict.failed or verdict.name == "truthful"


def tables(report: AuditReport) -> list[Table]:
    """What the contract demands of every auction; what an auction promises, by class of owners."""
    contract = _table("the contract asks", "that is", "found", "markets")
    promised = _table("property", "owners", "said", "found", "markets", "worst")
    for verdict in report.verdicts:
        outcome = Text(verdict.outcome, style=STYLES[verdict.outcome])
        markets = f"{verdict.markets:,}" if verdict.held is not None else ""
        if verdict.owners == "all":
            contract.add_row(verdict.name, Text(verdict.statement), outcome, markets)
            continue
        worst = (
            f"{verdict.worst:.3g} {SHORT.get(verdict.unit, verdict.unit)}"
            if verdict.held is False
            else ""
        )
        name = SHORT.get(verdict.name, verdict.name)
        promised.add_row(name, verdict.owners, PROMISES[verdict.promised], outcome, markets, worst)
    return [contract, promised]


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("markets", "worst") else "left")
    return table


def _refutation(verdict: Verdict) -> RenderableType:
    style = STYLES[verdict.outcome]
    parts: list[RenderableType] = [Text(verdict.sentence(), style=style)]
    if verdict.counterexample is None:
        parts.append(Padding(Text(verdict.note), (0, 0, 1, 2)))
    else:
        parts.append(Padding(market(verdict.counterexample), (0, 0, 1, 2)))
    return Group(*parts)


def market(example: Counterexample) -> RenderableType:
    """One small market: who the owners are, what happens, and that in words."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
    for heading in example.headings():
        label, colon, what = heading.partition(": ")
        table.add_column(
            f"{label}\n{what}" if colon else f"\n{heading}",
            justify="left" if heading == "family" else "right",
        )
    for i, row in enumerate(example.rows()):
        table.add_row(*row, style="bold" if i == example.case.owner else "")
    return Group(Text(example.caption()), table, Text(example.story))
