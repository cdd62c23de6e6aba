"""The kinds of events and the typed columns of each. Columns are only ever added.

Participants are numbers: owner i is i, the broker is -1, buyer k is -2 - k (their names are in the `buyer` column).
Every column says who in the market can see it: a log has more in it than was said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from flmarket_sim.owners.valuation import FAMILIES

SCHEMA_VERSION = 1
BROKER = -1


def buyer_id(index: int) -> int:
    """The participant number of the buyer at a position of the scenario's list."""
    return -2 - index


DECISION_REASONS = ("accepted", "below cost", "lifetime budget", "nothing on the menu")
DROPOUT_STAGES = ("bid", "gradient")
DROPOUT_REASONS = ("away", "lifetime budget", "dropped out")
LATE_MESSAGES = ("bid", "decision", "gradient")

F64, I32, I64, BOOL = pa.float64(), pa.int32(), pa.int64(), pa.bool_()


class Seen(Enum):
    """Who in the market can see a value of an event."""

    BOTH = "sender and receiver"  # it is in the message, or follows from it
    SENDER = "sender"  # she knows it and keeps it to herself
    NOBODY = "nobody"  # only the simulator can know it


BOTH, SENDER, NOBODY = Seen.BOTH, Seen.SENDER, Seen.NOBODY


@dataclass(frozen=True)
class Column:
    """A column, and who can see it; `names` makes it a dictionary column whose values are written as positions in `names`."""

    name: str
    type: pa.DataType
    seen: Seen
    meaning: str
    names: tuple[str, ...] | None = None


ENVELOPE = (
    Column("seq", pa.uint64(), BOTH, "place in the total order of all events of the run"),
    Column("time", F64, BOTH, "simulated seconds at which it was sent or happened"),
    Column("round", I32, BOTH, "round of the buyer, from 0"),
    Column("buyer", pa.int8(), BOTH, "name of the buyer whose round it is", ()),
    Column("sender", I32, BOTH, "who: owner i is i, broker -1, buyer k is -2 - k"),
    Column("receiver", I32, BOTH, "to whom, numbered like senders"),
)

KINDS: dict[str, tuple[Column, ...]] = {
    "announcement": (Column("budget", F64, BOTH, "the buyer's money for the round"),),
    "bid": (
        Column("family", pa.int8(), SENDER, "reported valuation family", FAMILIES),
        Column("rate", F64, SENDER, "reported rate of the family"),
        Column("privacy_budget", F64, BOTH, "reported largest privacy loss"),
        Column("data_size", I64, BOTH, "reported records"),
        Column("value", F64, BOTH, "money asked for the whole privacy budget"),
        Column(
            "values",
            pa.list_(F64),
            BOTH,
            "money asked at each level, where family and rate do not say it",
        ),
        Column(
            "behaviour",
            pa.int8(),
            SENDER,
            "name of the bidder's behaviour; null: she simply tells the truth",
            (),
        ),
        Column(
            "person", I32, SENDER, "the owner behind the sender, where that is a false name of hers"
        ),
        Column(
            "true_privacy_budget",
            F64,
            SENDER,
            "what a bidder with a behaviour could have reported; null for the others",
        ),
        Column(
            "true_data_size",
            I64,
            SENDER,
            "her records, those of a false name its part; null as before",
        ),
        Column(
            "true_value", F64, SENDER, "what she would truly ask for all of that; null as before"
        ),
    ),
    "allocation": (
        Column("privacy_loss", F64, BOTH, "what the auction buys; 0 for losers"),
        Column("payment", F64, BOTH, "what it offers for that"),
    ),
    "decision": (
        Column("accepted", BOOL, BOTH, "whether the owner will deliver"),
        Column("reason", pa.int8(), SENDER, "why", DECISION_REASONS),
        Column("value", F64, SENDER, "her true valuation of what she was offered to sell"),
    ),
    "model": (Column("bytes", I64, BOTH, "size of the parameters"),),
    "gradient": (
        Column("privacy_loss", F64, BOTH, "e of the Laplace mechanism"),
        Column("records", I64, BOTH, "records it was computed on"),
        Column("norm", F64, SENDER, "L1 norm before clipping; null without learning"),
        Column("clipped", BOOL, SENDER, "whether clipping changed it; null without learning"),
        Column("noise_scale", F64, BOTH, "2 L / e"),
        Column("bytes", I64, BOTH, "size of the message"),
    ),
    "weight": (
        Column("weight", F64, SENDER, "aggregation weight of the receiver's gradient"),
        Column("share", F64, SENDER, "W: her share of the records of all bidders"),
        Column("privacy_loss", F64, SENDER, "e of her gradient"),
    ),
    "delivery": (
        Column("valid", BOOL, BOTH, "whether there is a gradient at all"),
        Column("gradients", I32, BOTH, "gradients aggregated"),
        Column("owed", F64, BOTH, "what the buyer has to pay"),
        Column("error_bound", F64, BOTH, "ERR of the delivered gradient; infinite if invalid"),
        Column("variance", F64, BOTH, "its variance part, of one coordinate"),
        Column("squared_bias", F64, BOTH, "its bias part"),
        Column(
            "true_error",
            F64,
            NOBODY,
            "squared L2 distance to the noiseless gradient of all bidders",
        ),
        Column("true_squared_bias", F64, NOBODY, "the part of it that is not noise"),
        Column(
            "bound_of_data",
            F64,
            NOBODY,
            "ERR of the same weights with the bidders' true numbers of records in W",
        ),
    ),
    "payment": (
        Column(
            "amount", F64, BOTH, "money: the buyer's to the broker, then the broker's to each owner"
        ),
    ),
    "update": (
        Column("valid", BOOL, BOTH, "whether the model moved"),
        Column("loss", F64, BOTH, "mean test loss; null where not evaluated"),
        Column("accuracy", F64, BOTH, "test accuracy; null where not evaluated"),
        Column(
            "recall", pa.list_(F64), BOTH, "test recall of each class; null where not evaluated"
        ),
    ),
    "late": (Column("message", pa.int8(), BOTH, "what came after the deadline", LATE_MESSAGES),),
    "dropout": (
        Column("stage", pa.int8(), SENDER, "what is missing", DROPOUT_STAGES),
        Column("reason", pa.int8(), SENDER, "why", DROPOUT_REASONS),
    ),
    "round": (
        Column("started", F64, BOTH, "simulated seconds"),
        Column("ended", F64, BOTH, "simulated seconds"),
        Column("budget", F64, BOTH, "the buyer's money"),
        Column("asked", I32, BOTH, "owners asked"),
        Column("bids", I32, BOTH, "bids in time"),
        Column("winners", I32, BOTH, "owners the auction bought from"),
        Column("accepted", I32, BOTH, "winners who accepted in time"),
        Column("delivered", I32, BOTH, "gradients in time: aggregated and paid"),
        Column("spent", F64, BOTH, "money paid"),
        Column(
            "privacy_sold", F64, NOBODY, "sum of the privacy losses of the aggregated gradients"
        ),
        Column("value_sold", F64, NOBODY, "what those losses are truly worth to their owners"),
        Column("valid", BOOL, BOTH, "whether the buyer got a gradient"),
        Column("error_bound", F64, BOTH, "as in delivery"),
        Column("variance", F64, BOTH, "as in delivery"),
        Column("squared_bias", F64, BOTH, "as in delivery"),
        Column("true_error", F64, NOBODY, "as in delivery"),
        Column("loss", F64, BOTH, "as in update"),
        Column("accuracy", F64, BOTH, "as in update"),
        Column("bound_of_data", F64, NOBODY, "as in delivery"),
    ),
    "counterfactual": (
        Column(
            "utility",
            F64,
            NOBODY,
            "what the offers to an owner with a behaviour are worth to her, the declined ones nothing",
        ),
        Column(
            "truthful_utility",
            F64,
            NOBODY,
            "what the truth would have got her: same other bids, same random numbers",
        ),
        Column("truthful_privacy_loss", F64, NOBODY, "what the auction would then have bought"),
        Column("truthful_payment", F64, NOBODY, "and offered for it"),
    ),
    "transfer": (
        Column("amount", F64, BOTH, "money that one owner gives another beside the market"),
    ),
    "offer": (
        Column("place", I32, SENDER, "the owner's place in the order of asking, from 0"),
        Column(
            "money", F64, BOTH, "what is left of the buyer's money: the most that she can be paid"
        ),
        Column("privacy_losses", pa.list_(F64), BOTH, "losses on her menu"),
        Column(
            "payments",
            pa.list_(F64),
            BOTH,
            "what they pay: straight in between (certified sizes), or for one record (reported)",
        ),
    ),
}


def columns(
    kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...] = ()
) -> tuple[Column, ...]:
    """Envelope and payload of a kind, with the names that depend on the scenario filled in."""
    known = {"buyer": buyers, "behaviour": behaviours}
    return tuple(
        replace(c, names=known[c.name]) if c.name in known else c for c in ENVELOPE + KINDS[kind]
    )


def arrow_schema(kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...] = ()) -> pa.Schema:
    fields = []
    for column in columns(kind, buyers, behaviours):
        kept = column.type if column.names is None else pa.dictionary(column.type, pa.string())
        fields.append(pa.field(column.name, kept, metadata={"meaning": column.meaning}))
    return pa.schema(
        fields, metadata={"flmarket_schema": str(SCHEMA_VERSION), "flmarket_kind": kind}
    )
