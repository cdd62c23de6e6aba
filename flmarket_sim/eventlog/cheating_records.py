"""Events of markets in which owners cheat after a sale, or a broker looks for it."""

from __future__ import annotations

from flmarket_sim.eventlog.record import Booleans, Integers, Reals, Record, column
from flmarket_sim.eventlog.words import (
    BOOL,
    BOTH,
    BROKER_TO_BUYER,
    BROKER_TO_OWNER,
    F64,
    I8,
    I32,
    I64,
    OWNER_TO_BROKER,
    SENDER,
)  # fmt: skip


class CheatRecord(Record, kind="cheat", parties=OWNER_TO_BROKER):
    """What an owner with a cheat truly sends, beside what her gradient claims to be."""

    cheat: Integers = column(I8, SENDER, "name of what she does after the sale", ())
    privacy_loss: Reals = column(F64, SENDER, "e that she sold")
    released_at: Reals = column(
        F64, SENDER, "e at which her message was perturbed; null for a repeated message"
    )
    true_privacy_loss: Reals = column(F64, SENDER, "e that her records truly lose by the message")
    records: Integers = column(I64, SENDER, "records that she sold")
    true_records: Integers = column(I64, SENDER, "records that she computed on")
    scale: Reals = column(F64, SENDER, "factor of her message after the perturbation")
    repeated: Booleans = column(BOOL, SENDER, "whether it is a message that she has sent before")
    true_value: Reals = column(F64, SENDER, "what the sale truly costs her, at what she does")


class VerdictRecord(Record, kind="verdict", parties=BROKER_TO_OWNER):
    """What the broker's check says of a message, and what follows for its owner."""

    score: Reals = column(
        F64, SENDER, "how suspicious the message is; null: the check cannot judge it"
    )
    p_value: Reals = column(
        F64, SENDER, "chance that an honest message is at least as suspicious; null as before"
    )
    accused: Booleans = column(BOOL, BOTH, "whether that chance is at most [check] level")
    paid_share: Reals = column(F64, BOTH, "share of the offered payment that she gets")
    reputation: Reals = column(
        F64, BOTH, "her reputation after this verdict; null where none is kept"
    )
    excluded_until: Integers = column(
        I32, BOTH, "the next round of the buyer in which her bid counts; null: it is not excluded"
    )


class ForfeitRecord(Record, kind="forfeit", parties=OWNER_TO_BROKER + BROKER_TO_BUYER):
    """A deposit that an accused owner loses; the broker passes the sum of them to the buyer."""

    amount: Reals = column(F64, BOTH, "money that changes hands")
