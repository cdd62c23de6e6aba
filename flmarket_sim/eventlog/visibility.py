"""Who in the market can see which columns of the log."""

from __future__ import annotations

from flmarket_sim.eventlog.record import Column, Record, Role, Seen
from flmarket_sim.eventlog.schema import KINDS

PARTIES: dict[str, tuple[tuple[Role, Role], ...]] = {  # kind -> roles of sender and receiver
    record.kind: record.parties for record in Record.__subclasses__()
}

# A kept model is seen by its buyer. The others see the parameters with which a round begins, and
# only if they are sent this message in it.
PARAMETERS_COME_WITH = {Role.BROKER: "announcement", Role.OWNER: "model"}
# The broker has made the delivered gradient and the buyer has received it.
SEES_DELIVERED_GRADIENT = (Role.BUYER, Role.BROKER)


def seen_by(kind: str, column: Column) -> tuple[Role, ...]:
    """The roles that see a column, each in its own events only; an empty tuple means nobody."""
    seeing: set[Role] = set()
    for sender, receiver in PARTIES[kind]:
        if column.seen is not Seen.NOBODY:
            seeing.add(sender)
        if column.seen is Seen.BOTH:
            seeing.add(receiver)
    return tuple(role for role in Role if role in seeing)


def columns_of_sender(kind: str) -> tuple[str, ...]:
    """Payload that the sender of an event sees of it. If there is none, the event is not hers."""
    return tuple(column.name for column in KINDS[kind] if column.seen is not Seen.NOBODY)


def columns_of_receiver(kind: str) -> tuple[str, ...]:
    """Payload that the receiver of an event sees. If there is none, it never reaches her."""
    return tuple(column.name for column in KINDS[kind] if column.seen is Seen.BOTH)
