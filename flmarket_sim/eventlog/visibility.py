"""Who in the market can see what of the log: who sends each kind to whom, and what follows for its columns."""

from __future__ import annotations

from flmarket_sim.eventlog.schema import KINDS, Column, Seen

BUYER, BROKER, OWNER = "buyer", "broker", "owner"
PARTIES: dict[str, tuple[tuple[str, str], ...]] = {  # kind -> who is sender, who is receiver
    "announcement": ((BUYER, BROKER), (BROKER, OWNER)),
    "bid": ((OWNER, BROKER),),
    "allocation": ((BROKER, OWNER),),
    "decision": ((OWNER, BROKER),),
    "model": ((BROKER, OWNER),),
    "gradient": ((OWNER, BROKER),),
    "weight": ((BROKER, OWNER),),
    "delivery": ((BROKER, BUYER),),
    "payment": ((BUYER, BROKER), (BROKER, OWNER)),
    "update": ((BUYER, BUYER),),
    "late": ((OWNER, BROKER),),
    "dropout": ((OWNER, BROKER),),
    "round": ((BUYER, BUYER),),
    "counterfactual": ((OWNER, BROKER),),
    "transfer": ((OWNER, OWNER),),
    "offer": ((BROKER, OWNER),),
}
ORDER = (BUYER, BROKER, OWNER)


def seen_by(kind: str, column: Column) -> tuple[str, ...]:
    """The roles in the market that see a column, each in her own events only; nobody: an empty tuple."""
    seeing: set[str] = set()
    for sender, receiver in PARTIES[kind]:
        if column.seen is not Seen.NOBODY:
            seeing.add(sender)
        if column.seen is Seen.BOTH:
            seeing.add(receiver)
    return tuple(role for role in ORDER if role in seeing)


def columns_of_sender(kind: str) -> tuple[str, ...]:
    """Payload that the sender of an event sees of it. Without any, the event is none of hers."""
    return tuple(column.name for column in KINDS[kind] if column.seen is not Seen.NOBODY)


def columns_of_receiver(kind: str) -> tuple[str, ...]:
    """Payload that the receiver of an event sees of it. Without any, it never reaches her."""
    return tuple(column.name for column in KINDS[kind] if column.seen is Seen.BOTH)
