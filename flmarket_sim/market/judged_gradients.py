"""The gradients of a round that came in time: which are aggregated, and what their owners get.

The buyer pays what the owners are paid, to the last digit. Lost deposits are other money: they go
from the owners to the broker, and their sum from her to the buyer (docs/cheating.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.eventlog import buyer_id
from flmarket_sim.eventlog.cheating_records import ForfeitRecord, VerdictRecord
from flmarket_sim.eventlog.record import with_nulls
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.inspection import Inspection, Verdicts
from flmarket_sim.market.messages import GradientMessage, Offers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class JudgedGradients:
    """g gradients in time.

    rows      (g,) their rows of the offers
    kept      the messages that are aggregated
    amounts   (g,) what their owners are paid
    verdicts  what the broker thinks of them; None if she does not look for cheats
    """

    rows: Ints
    kept: list[GradientMessage]
    amounts: Floats
    verdicts: Verdicts | None

    @property
    def billed(self) -> bool:
        """Whether the buyer pays: for a gradient, or for messages that were thrown away."""
        return bool(self.kept) or float(self.amounts.sum()) > 0

    def paid_by(self, payment: Floats) -> JudgedGradients:
        """The same verdicts where owners would be paid `payment` (k,), by offers, if nobody were
        accused. Deposits stay those of the auction's offers."""
        amounts = payment[self.rows]
        if self.verdicts is not None:
            amounts = amounts * self.verdicts.paid_share
        return replace(self, amounts=amounts)

    def received(self) -> Floats:
        """(g,) what owners have of their sales: payments less lost deposits."""
        return self.amounts if self.verdicts is None else self.amounts - self.verdicts.forfeited

    def log(self, cohort: Cohort, offers: Offers) -> None:
        """Logs the verdicts, and books them and the deposits that are lost."""
        found, ledger = self.verdicts, cohort.world.ledger
        if found is None:
            return
        slots = offers.slots[self.rows]
        names = cohort.participants[slots]
        unjudged = np.isnan(found.scores)
        record = VerdictRecord(
            score=with_nulls(found.scores, unjudged),
            p_value=with_nulls(found.p_values, unjudged),
            accused=found.accused,
            paid_share=found.paid_share,
            reputation=found.reputation,
            excluded_until=found.excluded_until,
        )
        cohort.write(record, receiver=names)
        ledger.verdicts(cohort.people[slots], found.accused)
        lost = found.forfeited > 0
        if lost.any():
            amounts = found.forfeited[lost]
            cohort.write(ForfeitRecord(amount=amounts), sender=names[lost])
            cohort.write(ForfeitRecord(amount=amounts.sum()), receiver=buyer_id(cohort.buyer))
            ledger.forfeit(cohort.people[slots[lost]], amounts)


def judge_gradients(
    inspection: Inspection | None, cohort: Cohort, offers: Offers, gradients: list[GradientMessage]
) -> JudgedGradients:
    """What becomes of the gradients in time: all are aggregated and paid unless a check speaks."""
    rows = np.array([message.row for message in gradients], dtype=np.int64)
    amounts = offers.payment[rows]
    if inspection is None or not gradients:
        return JudgedGradients(rows, gradients, amounts, None)
    verdicts = inspection.examine(cohort, offers, gradients)
    discarded = verdicts.discarded.tolist()
    kept = [m for m, gone in zip(gradients, discarded, strict=True) if not gone]
    return JudgedGradients(rows, kept, amounts * verdicts.paid_share, verdicts)
