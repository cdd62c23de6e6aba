"""The kinds of events and the typed columns of each. Columns are only ever added.

Participants are numbers: owner i is i, the broker is -1, buyer k is -2 - k (their names are in the `buyer` column).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from flmarket_sim.valuation import FAMILIES

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


@dataclass(frozen=True)
class Column:
    """A column; `names` makes it a dictionary column whose values are written as positions in `names`."""

    name: str
    type: pa.DataType
    meaning: str
    names: tuple[str, ...] | None = None


ENVELOPE = (
    Column("seq", pa.uint64(), "place in the total order of all events of the run"),
    Column("time", F64, "simulated seconds at which it was sent or happened"),
    Column("round", I32, "round of the buyer, from 0"),
    Column("buyer", pa.int8(), "name of the buyer whose round it is", ()),
    Column("sender", I32, "who: owner i is i, broker -1, buyer k is -2 - k"),
    Column("receiver", I32, "to whom, numbered like senders"),
)

KINDS: dict[str, tuple[Column, ...]] = {
    "announcement": (Column("budget", F64, "the buyer's money for the round"),),
    "bid": (
        Column("family", pa.int8(), "reported valuation family", FAMILIES),
        Column("rate", F64, "reported rate of the family"),
        Column("privacy_budget", F64, "reported largest privacy loss"),
        Column("data_size", I64, "reported records"),
        Column("value", F64, "money asked for the whole privacy budget"),
        Column("values", pa.list_(F64), "money asked at each level, where family and rate do not say it"),
        Column("behaviour", pa.int8(), "name of the bidder's behaviour; null: she simply tells the truth", ()),
        Column("person", I32, "the owner behind the sender, where that is a false name of hers"),
        Column("true_privacy_budget", F64, "what a bidder with a behaviour could have reported; null for the others"),
        Column("true_data_size", I64, "her records, those of a false name its part; null as before"),
        Column("true_value", F64, "what she would truly ask for all of that; null as before"),
    ),
    "allocation": (
        Column("privacy_loss", F64, "what the auction buys; 0 for losers"),
        Column("payment", F64, "what it offers for that"),
    ),
    "decision": (
        Column("accepted", BOOL, "whether the owner will deliver"),
        Column("reason", pa.int8(), "why", DECISION_REASONS),
        Column("value", F64, "her true valuation of what she was offered to sell"),
    ),
    "model": (Column("bytes", I64, "size of the parameters"),),
    "gradient": (
        Column("privacy_loss", F64, "e of the Laplace mechanism"),
        Column("records", I64, "records it was computed on"),
        Column("norm", F64, "L1 norm before clipping; null without learning"),
        Column("clipped", BOOL, "whether clipping changed it; null without learning"),
        Column("noise_scale", F64, "2 L / e"),
        Column("bytes", I64, "size of the message"),
    ),
    "weight": (
        Column("weight", F64, "aggregation weight of the receiver's gradient"),
        Column("share", F64, "W: her share of the records of all bidders"),
        Column("privacy_loss", F64, "e of her gradient"),
    ),
    "delivery": (
        Column("valid", BOOL, "whether there is a gradient at all"),
        Column("gradients", I32, "gradients aggregated"),
        Column("owed", F64, "what the buyer has to pay"),
        Column("error_bound", F64, "ERR of the delivered gradient; infinite if invalid"),
        Column("variance", F64, "its variance part, of one coordinate"),
        Column("squared_bias", F64, "its bias part"),
        Column("true_error", F64, "squared L2 distance to the noiseless gradient of all bidders"),
        Column("true_squared_bias", F64, "the part of it that is not noise"),
        Column("bound_of_data", F64, "ERR of the same weights with the bidders' true numbers of records in W"),
    ),
    "payment": (Column("amount", F64, "money: the buyer's to the broker, then the broker's to each owner"),),
    "update": (
        Column("valid", BOOL, "whether the model moved"),
        Column("loss", F64, "mean test loss; null where not evaluated"),
        Column("accuracy", F64, "test accuracy; null where not evaluated"),
        Column("recall", pa.list_(F64), "test recall of each class; null where not evaluated"),
    ),
    "late": (Column("message", pa.int8(), "what came after the deadline", LATE_MESSAGES),),
    "dropout": (
        Column("stage", pa.int8(), "what is missing", DROPOUT_STAGES),
        Column("reason", pa.int8(), "why", DROPOUT_REASONS),
    ),
    "round": (
        Column("started", F64, "simulated seconds"),
        Column("ended", F64, "simulated seconds"),
        Column("budget", F64, "the buyer's money"),
        Column("asked", I32, "owners asked"),
        Column("bids", I32, "bids in time"),
        Column("winners", I32, "owners the auction bought from"),
        Column("accepted", I32, "winners who accepted in time"),
        Column("delivered", I32, "gradients in time: aggregated and paid"),
        Column("spent", F64, "money paid"),
        Column("privacy_sold", F64, "sum of the privacy losses of the aggregated gradients"),
        Column("value_sold", F64, "what those losses are truly worth to their owners"),
        Column("valid", BOOL, "whether the buyer got a gradient"),
        Column("error_bound", F64, "as in delivery"),
        Column("variance", F64, "as in delivery"),
        Column("squared_bias", F64, "as in delivery"),
        Column("true_error", F64, "as in delivery"),
        Column("loss", F64, "as in update"),
        Column("accuracy", F64, "as in update"),
        Column("bound_of_data", F64, "as in delivery"),
    ),
    "counterfactual": (
        Column("utility", F64, "what the offers to an owner with a behaviour are worth to her, the declined ones nothing"),
        Column("truthful_utility", F64, "what the truth would have got her: same other bids, same random numbers"),
        Column("truthful_privacy_loss", F64, "what the auction would then have bought"),
        Column("truthful_payment", F64, "and offered for it"),
    ),
    "transfer": (Column("amount", F64, "money that one owner gives another beside the market"),),
    "offer": (
        Column("place", I32, "the owner's place in the order of asking, from 0"),
        Column("money", F64, "what is left of the buyer's money: the most that she can be paid"),
        Column("privacy_losses", pa.list_(F64), "losses on her menu"),
        Column(
            "payments", pa.list_(F64), "what they pay: straight in between (certified sizes), or for one record (reported)"
        ),
    ),
}


def columns(kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Envelope and payload of a kind, with the names that depend on the scenario filled in."""
    known = {"buyer": buyers, "behaviour": behaviours}
    return tuple(Column(c.name, c.type, c.meaning, known[c.name]) if c.name in known else c for c in ENVELOPE + KINDS[kind])


def arrow_schema(kind: str, buyers: tuple[str, ...], behaviours: tuple[str, ...] = ()) -> pa.Schema:
    fields = []
    for column in columns(kind, buyers, behaviours):
        kept = column.type if column.names is None else pa.dictionary(column.type, pa.string())
        fields.append(pa.field(column.name, kept, metadata={"meaning": column.meaning}))
    return pa.schema(fields, metadata={"flmarket_schema": str(SCHEMA_VERSION), "flmarket_kind": kind})
