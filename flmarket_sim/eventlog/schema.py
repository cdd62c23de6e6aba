"""The kinds of events: a record with typed columns for each. Columns are only ever added.

Participants are numbers: owner i is i, the broker is -1, buyer k is -2 - k; the `buyer` column has
the names of buyers. Every column says who in the market can see it: the log has more than the
messages.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

import pyarrow as pa

from flmarket_sim.eventlog.record import (
    Booleans,
    Column,
    Integers,
    Lists,
    Reals,
    Record,
    column,
    labels,
)
from flmarket_sim.eventlog.words import (
    BOOL,
    BOTH,
    BROKER_TO_BUYER,
    BROKER_TO_OWNER,
    BUYER_TO_BROKER,
    BUYER_TO_BUYER,
    F64,
    I8,
    I32,
    I64,
    LIST,
    NOBODY,
    OWNER_TO_BROKER,
    OWNER_TO_OWNER,
    SENDER,
)  # fmt: skip
from flmarket_sim.owners.family_table import FAMILIES

SCHEMA_VERSION = 1
BROKER = -1


def buyer_id(index: int) -> int:
    """The participant number of the buyer at a position of the scenario's list."""
    return -2 - index


class DecisionReason(IntEnum):
    """Why an owner accepts or declines an offer."""

    ACCEPTED = 0
    BELOW_COST = 1
    LIFETIME_BUDGET = 2
    NOTHING_ON_THE_MENU = 3


class DropoutStage(IntEnum):
    """What an owner does not send."""

    BID = 0
    GRADIENT = 1


class DropoutReason(IntEnum):
    """Why an owner does not send it."""

    AWAY = 0
    LIFETIME_BUDGET = 1
    DROPPED_OUT = 2


class ErrorKind(IntEnum):
    """What an error bound is a bound of (docs/theory.md, section 7)."""

    VECTOR = 0
    COORDINATE = 1


class LateMessage(IntEnum):
    """What arrives after its deadline."""

    BID = 0
    DECISION = 1
    GRADIENT = 2


ENVELOPE = (
    Column("seq", pa.uint64(), BOTH, "place in the total order of all events of the run"),
    Column("time", F64, BOTH, "simulated seconds at which it was sent or happened"),
    Column("round", I32, BOTH, "round of the buyer, from 0"),
    Column("buyer", I8, BOTH, "name of the buyer whose round it is", ()),
    Column("sender", I32, BOTH, "who: owner i is i, broker -1, buyer k is -2 - k"),
    Column("receiver", I32, BOTH, "to whom, numbered like senders"),
)


class AnnouncementRecord(Record, kind="announcement", parties=BUYER_TO_BROKER + BROKER_TO_OWNER):
    """An auction is open: the buyer tells the broker, the broker tells each asked owner."""

    budget: Reals = column(F64, BOTH, "the buyer's money for the round")


class BidRecord(Record, kind="bid", parties=OWNER_TO_BROKER):
    """An owner's report, and the truth behind it, which only she knows."""

    family: Integers = column(I8, SENDER, "reported valuation family", FAMILIES)
    rate: Reals = column(F64, SENDER, "reported rate of the family")
    privacy_budget: Reals = column(F64, BOTH, "reported largest privacy loss")
    data_size: Integers = column(I64, BOTH, "reported records")
    value: Reals = column(F64, BOTH, "money asked for the whole privacy budget")
    values: Lists = column(
        LIST, BOTH, "money asked at each level, where family and rate do not say it"
    )
    behaviour: Integers = column(
        I8, SENDER, "name of the bidder's behaviour; null: she simply tells the truth", ()
    )
    person: Integers = column(
        I32, SENDER, "the owner behind the sender, where that is a false name of hers"
    )
    true_privacy_budget: Reals = column(
        F64, SENDER, "what a bidder with a behaviour could have reported; null for the others"
    )
    true_data_size: Integers = column(
        I64, SENDER, "her records, those of a false name its part; null as before"
    )
    true_value: Reals = column(
        F64, SENDER, "what she would truly ask for all of that; null as before"
    )


class AllocationRecord(Record, kind="allocation", parties=BROKER_TO_OWNER):
    """The auction's outcome for one bidder."""

    privacy_loss: Reals = column(F64, BOTH, "what the auction buys; 0 for losers")
    payment: Reals = column(F64, BOTH, "what it offers for that")


class DecisionRecord(Record, kind="decision", parties=OWNER_TO_BROKER):
    """A winner accepts or declines her offer."""

    accepted: Booleans = column(BOOL, BOTH, "whether the owner will deliver")
    reason: Integers = column(I8, SENDER, "why", labels(DecisionReason))
    value: Reals = column(F64, SENDER, "her true valuation of what she was offered to sell")


class ModelRecord(Record, kind="model", parties=BROKER_TO_OWNER):
    """The broker sends the parameters of the buyer's model to an owner who accepted."""

    bytes: Integers = column(I64, BOTH, "size of the parameters")


class GradientRecord(Record, kind="gradient", parties=OWNER_TO_BROKER):
    """An owner sends her perturbed gradient."""

    privacy_loss: Reals = column(F64, BOTH, "e of the perturbation")
    records: Integers = column(I64, BOTH, "records it was computed on")
    norm: Reals = column(
        F64, SENDER, "norm before clipping, in the norm of the perturbation; null without learning"
    )
    clipped: Booleans = column(
        BOOL, SENDER, "whether that norm is above `clip`; null without learning"
    )
    noise_scale: Reals = column(
        F64, BOTH, "scale of the noise of one coordinate (laplace: 2 L / e); null for others"
    )
    bytes: Integers = column(I64, BOTH, "size of the message")
    variance: Reals = column(
        F64, BOTH, "total variance of the released vector, the largest in the domain"
    )
    delta: Reals = column(F64, BOTH, "delta of the promise (e, delta); 0: pure e-LDP")
    finite: Booleans = column(
        BOOL,
        SENDER,
        "whether what her model gave was finite; if not, she sends the release of a vector of "
        "zeros; null without learning",
    )


class WeightRecord(Record, kind="weight", parties=BROKER_TO_OWNER):
    """The weight that the broker gives an owner's gradient."""

    weight: Reals = column(F64, SENDER, "aggregation weight of the receiver's gradient")
    share: Reals = column(F64, SENDER, "W: her share of the records of all bidders")
    privacy_loss: Reals = column(F64, SENDER, "e of her gradient")


class DeliveryRecord(Record, kind="delivery", parties=BROKER_TO_BUYER):
    """The aggregated gradient, how good it is, and what it costs."""

    valid: Booleans = column(BOOL, BOTH, "whether there is a gradient at all")
    gradients: Integers = column(I32, BOTH, "gradients aggregated")
    owed: Reals = column(F64, BOTH, "what the buyer has to pay")
    error_bound: Reals = column(
        F64, BOTH, "ERR of the delivered gradient, as `error_kind` reads it; infinite if invalid"
    )
    variance: Reals = column(F64, BOTH, "its variance part, of the vector or of one coordinate")
    squared_bias: Reals = column(F64, BOTH, "its bias part")
    true_error: Reals = column(
        F64, NOBODY, "squared L2 distance to the noiseless gradient of all bidders"
    )
    true_squared_bias: Reals = column(F64, NOBODY, "the part of it that is not noise")
    bound_of_data: Reals = column(
        F64, NOBODY, "ERR of the same weights with the bidders' true numbers of records in W"
    )
    error_kind: Integers = column(
        I8, BOTH, "what error_bound is of: [aggregation] error", labels(ErrorKind)
    )
    vector_bound: Reals = column(F64, BOTH, "bound of the squared error of the whole gradient")
    coordinate_bound: Reals = column(F64, BOTH, "the paper's ERR, with 8 L^2 / e^2 for a variance")


class PaymentRecord(Record, kind="payment", parties=BUYER_TO_BROKER + BROKER_TO_OWNER):
    """Money changes hands."""

    amount: Reals = column(
        F64, BOTH, "money: the buyer's to the broker, then the broker's to each owner"
    )


class UpdateRecord(Record, kind="update", parties=BUYER_TO_BUYER):
    """The buyer takes a step with the gradient, and sometimes evaluates her model."""

    valid: Booleans = column(BOOL, BOTH, "whether the model moved")
    loss: Reals = column(
        F64,
        BOTH,
        "mean test loss of the model, or of the mean of the models so far where the scenario "
        "averages them (`[model] averaging`); null where not evaluated",
    )
    accuracy: Reals = column(F64, BOTH, "test accuracy of the same model; null where not evaluated")
    recall: Lists = column(LIST, BOTH, "test recall of each class; null where not evaluated")
    balanced_accuracy: Reals = column(
        F64, BOTH, "mean recall of the classes with test records; null where not evaluated"
    )


class LateRecord(Record, kind="late", parties=OWNER_TO_BROKER):
    """A message arrived after its deadline."""

    message: Integers = column(I8, BOTH, "what came after the deadline", labels(LateMessage))


class DropoutRecord(Record, kind="dropout", parties=OWNER_TO_BROKER):
    """An asked owner sends no bid, or an owner who accepted sends no gradient."""

    stage: Integers = column(I8, SENDER, "what is missing", labels(DropoutStage))
    reason: Integers = column(I8, SENDER, "why", labels(DropoutReason))


class RoundRecord(Record, kind="round", parties=BUYER_TO_BUYER):
    """The summary of one round of one buyer."""

    started: Reals = column(F64, BOTH, "simulated seconds")
    ended: Reals = column(F64, BOTH, "simulated seconds")
    budget: Reals = column(F64, BOTH, "the buyer's money")
    asked: Integers = column(I32, BOTH, "owners asked")
    bids: Integers = column(I32, BOTH, "bids in time")
    winners: Integers = column(I32, BOTH, "owners the auction bought from")
    accepted: Integers = column(I32, BOTH, "winners who accepted in time")
    delivered: Integers = column(I32, BOTH, "gradients in time: aggregated and paid")
    spent: Reals = column(F64, BOTH, "money paid")
    privacy_sold: Reals = column(
        F64, NOBODY, "sum of the privacy losses of the aggregated gradients"
    )
    value_sold: Reals = column(
        F64, NOBODY, "what those sales truly cost their owners, cheats counted"
    )
    valid: Booleans = column(BOOL, BOTH, "whether the buyer got a gradient")
    error_bound: Reals = column(F64, BOTH, "as in delivery")
    variance: Reals = column(F64, BOTH, "as in delivery")
    squared_bias: Reals = column(F64, BOTH, "as in delivery")
    true_error: Reals = column(F64, NOBODY, "as in delivery")
    loss: Reals = column(F64, BOTH, "as in update")
    accuracy: Reals = column(F64, BOTH, "as in update")
    bound_of_data: Reals = column(F64, NOBODY, "as in delivery")
    error_kind: Integers = column(I8, BOTH, "as in delivery", labels(ErrorKind))
    vector_bound: Reals = column(F64, BOTH, "as in delivery")
    coordinate_bound: Reals = column(F64, BOTH, "as in delivery")
    balanced_accuracy: Reals = column(F64, BOTH, "as in update")


class CounterfactualRecord(Record, kind="counterfactual", parties=OWNER_TO_BROKER):
    """What an owner with a behaviour was offered, and what the truth would have brought her."""

    utility: Reals = column(
        F64,
        NOBODY,
        "what the offers to an owner with a behaviour are worth to her, the declined ones nothing",
    )
    truthful_utility: Reals = column(
        F64, NOBODY, "what the truth would have got her: same other bids, same random numbers"
    )
    truthful_privacy_loss: Reals = column(F64, NOBODY, "what the auction would then have bought")
    truthful_payment: Reals = column(F64, NOBODY, "and offered for it")


class TransferRecord(Record, kind="transfer", parties=OWNER_TO_OWNER):
    """Money between owners, outside the market."""

    amount: Reals = column(F64, BOTH, "money that one owner gives another beside the market")


class OfferRecord(Record, kind="offer", parties=BROKER_TO_OWNER):
    """A menu, in an auction that asks one owner after the other."""

    place: Integers = column(I32, SENDER, "the owner's place in the order of asking, from 0")
    money: Reals = column(
        F64, BOTH, "what is left of the buyer's money: the most that she can be paid"
    )
    privacy_losses: Lists = column(LIST, BOTH, "losses on her menu")
    payments: Lists = column(
        LIST,
        BOTH,
        "what they pay: straight in between (certified sizes), or for one record (reported)",
    )


class ContributionRecord(Record, kind="contribution", parties=BROKER_TO_OWNER):
    """What a seller contributed to the round, where the scenario asks for it."""

    value: Reals = column(
        F64, SENDER, "the receiver's value, in units of an error bound or of a validation loss"
    )
    standard_error: Reals = column(
        F64, SENDER, "standard error of that value over random orders; 0: it is exact"
    )
    share: Reals = column(
        F64, SENDER, "share of the money that the value is good for, whether it is paid or not"
    )


class CombinationRecord(Record, kind="combination", parties=BROKER_TO_BUYER):
    """What a robust rule made of the messages, beside the weighted sum. The weighted sum has
    none."""

    departure: Reals = column(
        F64,
        BOTH,
        "squared L2 distance of the delivered gradient to the weighted sum of the same messages; "
        "null without learning",
    )
    honest_bound: Reals = column(
        F64,
        BOTH,
        "(root of vector_bound + root of departure)^2: bounds the squared error in the mean, if "
        "everybody sends what she sold; null without learning",
    )
    breakdown: Reals = column(
        F64,
        BOTH,
        "share of the votes from which on messages can carry the gradient away; null where the "
        "rule does not say",
    )


# Their kinds come last in KINDS, which is in the order of definition.
from flmarket_sim.eventlog import cheating_records  # noqa: E402, F401

KINDS: dict[str, tuple[Column, ...]] = {
    record.kind: record.columns for record in Record.__subclasses__()
}


def columns(
    kind: str,
    buyers: tuple[str, ...],
    behaviours: tuple[str, ...] = (),
    families: tuple[str, ...] = FAMILIES,
    cheats: tuple[str, ...] = (),
) -> tuple[Column, ...]:
    """Envelope and payload of a kind, with the names that depend on the scenario filled in."""
    names = {"buyer": buyers, "behaviour": behaviours, "family": families, "cheat": cheats}
    return tuple(
        replace(c, names=names[c.name]) if c.name in names else c for c in ENVELOPE + KINDS[kind]
    )


def arrow_schema(
    kind: str,
    buyers: tuple[str, ...],
    behaviours: tuple[str, ...] = (),
    cheats: tuple[str, ...] = (),
) -> pa.Schema:
    """The same columns for Arrow; the metadata of a field says what the column means."""
    fields = []
    for c in columns(kind, buyers, behaviours, cheats=cheats):
        stored = c.type if c.names is None else pa.dictionary(c.type, pa.string())
        fields.append(pa.field(c.name, stored, metadata={"meaning": c.meaning}))
    return pa.schema(
        fields, metadata={"flmarket_schema": str(SCHEMA_VERSION), "flmarket_kind": kind}
    )
