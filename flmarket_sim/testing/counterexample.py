"""A counterexample: a table of owners, a sentence, and data to play it again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from flmarket_sim.errors import ContractError
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.valuation import family_names
from flmarket_sim.testing.auction_under_test import AuctionUnderTest
from flmarket_sim.testing.property_check import CaseJudgement, Check, MeanOutcome, number
from flmarket_sim.testing.violating_market import RelativeMisreport, ViolatingMarket

NUMBERS = ("rate", "privacy_budget", "data_size")
SHARES = ("budget_share", "size_share")


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
            family = str(families[i]).rpartition(":")[2]
            rows.append([str(i + 1), family, *(number(fact) for fact in facts), *shown])
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
        """Plain data from which `from_dict` makes the same counterexample."""
        case = self.case
        beside = case.beside and {"owners": _owners(case.beside[0]), "money": case.beside[1]}
        return {
            "violation": self.violation,
            "story": self.story,
            "seed": self.seed,
            "money": case.money,
            "levels": case.levels,
            "owners": _owners(case.truth),
            "owner": case.owner,
            "told": None if case.misreport is None else _report(case, case.misreport),
            "order": case.order and [int(place) for place in case.order],
            "beside": beside,
            "outcomes": {
                view.label: {"privacy_loss": view.loss.tolist(), "payment": view.payment.tolist()}
                for view in self.judgement.views
            },
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], check: Check) -> Counterexample:
        misreport, beside, order = data["told"], data["beside"], data["order"]
        case = ViolatingMarket(
            _profiles(data["owners"]),
            data["money"],
            data["levels"],
            data["owner"],
            misreport
            and RelativeMisreport(tuple(misreport["factor"]), *(misreport[key] for key in SHARES)),
            order and tuple(order),
            beside and (_profiles(beside["owners"]), beside["money"]),
        )
        views = tuple(
            MeanOutcome(label, np.array(part["privacy_loss"]), np.array(part["payment"]))
            for label, part in data["outcomes"].items()
        )
        return cls(
            check, case, CaseJudgement(data["violation"], views, data["story"]), data["seed"]
        )


def _owners(truth: Profiles) -> list[dict[str, Any]]:
    """The owners of one market."""
    return [
        {"family": str(family)} | {key: float(getattr(truth, key)[0, i]) for key in NUMBERS}
        for i, family in enumerate(family_names(truth.family[0]))
    ]


def _profiles(owners: list[dict[str, Any]]) -> Profiles:
    return Profiles(*([[owner[key] for owner in owners]] for key in ("family", *NUMBERS)))


def _report(case: ViolatingMarket, misreport: RelativeMisreport) -> dict[str, Any]:
    """The misreport of one owner: as she bids, and relative to the truth."""
    bids, i = case.misreported_bids(), case.owner
    return {
        "values": bids.values[0, i].tolist(),
        "privacy_budget": float(bids.privacy_budget[0, i]),
        "data_size": float(bids.data_size[0, i]),
        "factor": [float(factor) for factor in misreport.factor],
    } | {key: float(getattr(misreport, key)) for key in SHARES}
