"""How owners judge offers: what an offer is worth to them, and why they accept or decline it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from flmarket_sim.eventlog.schema import DecisionReason, DecisionRecord
from flmarket_sim.market.messages import Offers
from flmarket_sim.market.sale_value import step_shares
from flmarket_sim.market.world import World
from flmarket_sim.owners.valuation import covers

if TYPE_CHECKING:
    from flmarket_sim.market.cohort import Cohort

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


class Judgement:
    """Offers as their owners see them, by rows of the bids, and the log's `decisions` about them.

    value    (k,) true value of what each owner is offered to sell
    reason   (k,) DecisionReason codes
    accepts  whether each owner accepts by her valuation alone
    """

    def __init__(self, cohort: Cohort, offers: Offers, value: Floats, reason: Codes) -> None:
        self.value, self.reason = value, reason
        self.accepted = reason == DecisionReason.ACCEPTED
        self.accepts: list[bool] = self.accepted.tolist()
        self.privacy_loss: list[float] = offers.privacy_loss.tolist()
        self.payment: list[float] = offers.payment.tolist()
        record = DecisionRecord(accepted=self.accepted, reason=reason, value=value)
        self.decisions = cohort.table(record, cohort.participants[offers.slots])

    def decline(self, row: int, reason: DecisionReason) -> None:
        """The owner of a row declines, whatever her valuation says."""
        self.reason[row], self.accepted[row] = reason, False

    def accept(self, row: int, privacy_loss: float, payment: float) -> None:
        """The owner of a row takes this option of her menu."""
        self.reason[row], self.accepted[row] = DecisionReason.ACCEPTED, True
        self.accepts[row], self.privacy_loss[row], self.payment[row] = True, privacy_loss, payment


def rational(world: World) -> bool:
    """Whether owners decline what pays less than its true value."""
    return world.scenario.owners.accept == "rational"


def honest_money(world: World, payment: Floats) -> Floats:
    """(k,) the money on which honest owners count, whose payments are to be `payment`: less where
    the broker looks for cheats, because she may accuse honest owners, too."""
    rules = world.consequences
    return payment if rules is None else rules.honest(payment)


def judge(cohort: Cohort, offers: Offers) -> Judgement:
    """How the owners judge the outcome of an auction."""
    value = cohort.true_value(offers.slots, offers.privacy_loss)
    reason = np.full(len(value), DecisionReason.ACCEPTED, np.int8)
    if rational(cohort.world):
        reason[~covers(*_as_they_judge(cohort, offers, value))] = DecisionReason.BELOW_COST
    return Judgement(cohort, offers, value, reason)


def _as_they_judge(cohort: Cohort, offers: Offers, value: Floats) -> tuple[Floats, Floats]:
    """(k,), (k,) the money on which owners count and what the sale costs them.

    Where the broker looks for cheats, honest owners count on being accused as often as she may
    accuse them. Owners who cheat count on what they truly do.
    """
    payment, cheats = honest_money(cohort.world, offers.payment), cohort.cheats(offers)
    if cheats is not None:
        payment, value = payment.copy(), value.copy()
        payment[cheats.rows], value[cheats.rows] = cheats.expected, cheats.value
        value = for_person(cohort, offers, value)
    return for_person(cohort, offers, payment), value


def undecided(cohort: Cohort, slots: Ints) -> Judgement:
    """Before the first menu of a sale in turn: no owner has taken anything."""
    nothing = np.zeros(len(slots))
    reason = np.full(len(slots), DecisionReason.NOTHING_ON_THE_MENU, np.int8)
    return Judgement(cohort, Offers(slots, nothing, nothing), np.zeros(len(slots)), reason)


def for_person(cohort: Cohort, offers: Offers, money: Floats) -> Floats:
    """(k,) money of sales, as their owners compare it. A step owner with several names adds up the
    money of all her names, because her cost is one for all of them, and splits the sum by the
    records that they sell."""
    if not cohort.accounts:
        return money
    person = cohort.people[offers.slots]
    _, group = np.unique(person, return_inverse=True)
    size = cohort.records[offers.slots]
    share = step_shares(cohort.world.population, person, size, offers.privacy_loss)
    return np.where(share < 1.0, np.bincount(group, money)[group] * share, money)
