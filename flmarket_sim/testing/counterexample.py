"""A counterexample: a table of owners, a sentence, and data to play it again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flmarket_sim.errors import ContractError
from flmarket_sim.owners.valuation import family_names
from flmarket_sim.testing.auction_under_test import AuctionUnderTest
from flmarket_sim.testing.check import CaseJudgement, Check, number
from flmarket_sim.testing.violating_market import ViolatingMarket


@dataclass(frozen=True)
class Counterexample:
    """A market in which a property fails. `violation` is in the unit of its check."""

    check: Check
    case: ViolatingMarket
    judgement: CaseJudgement
    seed: int

    @property
    def violation(self) -> float:
        return self.judgement.violation

    @property
    def story(self) -> str:
        return self.judgement.story

    def replay(self, auction: Any) -> float:
        """The violation of this market under an auction; 0 if there is none."""
        subject = AuctionUnderTest(auction, self.seed)
        with suppress(ContractError):  # an auction that fails here is judged for it below
            subject.notice(self.case.bids(), self.case.budget)
        return self.check.judge(subject, self.case).violation

    def headings(self) -> list[str]:
        shown = [
            f"{view.label}: {what}" for view in self.judgement.views for what in ("sells", "paid")
        ]
        return ["owner", "family", "rate", "budget", "records", "worth", *shown]

    def rows(self) -> list[list[str]]:
        """One row for each owner: her type, the value of all she has, what she sells and gets."""
        truth = self.case.truth
        families, worth = family_names(truth.family[0]), truth.value(truth.privacy_budget)[0]
        rows = []
        for i in range(self.case.n):
            facts = (truth.rate[0, i], truth.privacy_budget[0, i], truth.data_size[0, i], worth[i])
            shown = [
                number(part[i], 3)
                for view in self.judgement.views
                for part in (view.loss, view.payment)
            ]
            rows.append([str(i + 1), str(families[i]), *(number(fact) for fact in facts), *shown])
        return rows

    def caption(self) -> str:
        levels = "one level" if self.case.levels == 1 else f"{self.case.levels} levels"
        return f"The buyer has {number(self.case.money)}; bids have {levels}."

    def __str__(self) -> str:
        table = [self.headings(), *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        return "\n".join([self.caption(), *lines, self.story])

    def as_dict(self) -> dict[str, Any]:
        case = self.case
        truth = case.truth
        reports = case.misreported_bids() if case.misreport is not None else None
        return {
            "violation": self.violation,
            "story": self.story,
            "money": case.money,
            "levels": case.levels,
            "owners": [
                {
                    "family": str(family),
                    "rate": float(truth.rate[0, i]),
                    "privacy_budget": float(truth.privacy_budget[0, i]),
                    "data_size": float(truth.data_size[0, i]),
                }
                for i, family in enumerate(family_names(truth.family[0]))
            ],
            "owner": case.owner,
            "told": reports
            and {
                "values": reports.values[0, case.owner].tolist(),
                "privacy_budget": float(reports.privacy_budget[0, case.owner]),
                "data_size": float(reports.data_size[0, case.owner]),
            },
            "order": case.order and list(case.order),
            "outcomes": {
                view.label: {"privacy_loss": view.loss.tolist(), "payment": view.payment.tolist()}
                for view in self.judgement.views
            },
        }
