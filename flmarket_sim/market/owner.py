"""The process of one asked owner in one round."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy.events import Event

from flmarket_sim.eventlog.schema import DecisionReason
from flmarket_sim.market.cohort import Cohort
from flmarket_sim.market.mail import Inbox, Letter
from flmarket_sim.market.messages import (
    Allocation,
    BidMessage,
    Broadcast,
    Decision,
    GradientMessage,
    MenuMessage,
)


def owner(
    cohort: Cohort, slot: int, inboxes: tuple[Inbox, Inbox, Inbox]
) -> Generator[Event, Any, None]:
    """An owner's round from the arrival of the announcement: bid, decide, compute, send, be paid.

    `inboxes` are the broker's for bids, decisions and gradients. A reply of None says: too late.
    """
    world = cohort.world
    env, ledger = world.env, cohort.accounts.get(slot, world.ledger)
    delays, number = cohort.delays, cohort.numbers[slot]

    if not cohort.present[slot]:
        cohort.absences.happen(slot, env.now)
        return
    reply = Letter(env)
    cohort.bids.happen(slot, env.now)
    inboxes[0].send(BidMessage(slot, *cohort.bid_rows[slot], reply), delays.bid[slot])

    answer: Allocation | MenuMessage | None = yield reply
    if answer is None:
        return
    row, inbox, judgement = answer.row, inboxes[1], cohort.judgement
    if isinstance(answer, MenuMessage):
        inbox = answer.inbox
        cohort.choose(row, answer.offer)
    elif answer.privacy_loss == 0.0:
        return
    loss, accepted = judgement.privacy_loss[row], judgement.accepts[row]
    if accepted and ledger.limited and not ledger.reserve(number, loss):
        judgement.decline(row, DecisionReason.LIFETIME_BUDGET)
        accepted = False
    reply = Letter(env)
    judgement.decisions.happen(row, env.now)
    decision = Decision(row, slot, accepted, loss, judgement.payment[row], reply)
    inbox.send(decision, delays.decision[slot])
    if not accepted:
        return

    broadcast: Broadcast | None = yield reply
    if broadcast is None:
        ledger.release(number, loss)
        return
    gradients = cohort.gradients(broadcast.parameters)
    if cohort.computing_seconds is not None:
        yield env.timeout(cohort.computing_seconds[slot])
    if cohort.drops_out[slot]:
        ledger.release(number, loss)
        cohort.dropouts.happen(slot, env.now)
        return
    gradient = gradients.perturbed(row)
    ledger.spend(number, loss, gradients.lost(row), gradients.cost(row))
    gradients.happen(row, env.now)
    reply = Letter(env)
    inboxes[2].send(GradientMessage(row, slot, gradient, reply), delays.gradient[slot])
    yield reply
