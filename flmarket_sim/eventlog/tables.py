"""The tables beside the events: owners.parquet and ledger.parquet, and who sees their columns.

A row is about one owner, in the order of their numbers. Only the owner herself sees it: here
`Seen.SENDER` means that owner.
"""

from __future__ import annotations

import pyarrow as pa

from flmarket_sim.eventlog.record import Column, Seen
from flmarket_sim.owners.valuation import FAMILIES

HERS = Seen.SENDER
F64, I32, I64 = pa.float64(), pa.int32(), pa.int64()

OWNERS = (
    Column("owner", I32, HERS, "her number"),
    Column("family", pa.int8(), HERS, "true valuation family", FAMILIES),
    Column("rate", F64, HERS, "true rate of the family"),
    Column("privacy_budget", F64, HERS, "largest privacy loss in one sale"),
    Column("data_size", I64, HERS, "number of her records"),
    Column("records_per_second", F64, HERS, "compute speed; null: gradients take no time"),
    Column("behaviour", pa.int8(), HERS, "name of her behaviour; null: she tells the truth", ()),
    Column(
        "cheat",
        pa.int8(),
        HERS,
        "what she does after a sale; null: she delivers what she sold; only in a market with "
        "cheats",
        (),
    ),
    Column(
        "name",
        pa.string(),
        HERS,
        "her name in the data; only with the partition 'given' in a market with learning",
    ),
    Column(
        "records",
        pa.list_(I32),
        HERS,
        "row numbers of her records in the training data, in the order in which she offers them; "
        "only in a market with learning, unless `[log] records = false`",
    ),
)
LEDGER = (
    Column("owner", I32, HERS, "her number"),
    Column("privacy_sold", F64, HERS, "sum of the privacy losses of all rounds"),
    Column("gradients", I64, HERS, "gradients that left her"),
    Column("earned", F64, HERS, "money that the broker paid her"),
    Column("transferred", F64, HERS, "money from other owners less money to them"),
    Column("delta_sold", F64, HERS, "sum of the deltas of all gradients; 0: every sale is pure"),
    Column(
        "privacy_lost",
        F64,
        HERS,
        "sum of the privacy losses that her records truly had; only in a market with cheats or a "
        "check, as the next columns",
    ),
    Column("forfeited", F64, HERS, "deposits that she lost to buyers"),
    Column("true_cost", F64, HERS, "what her messages truly cost her, in time or not"),
    Column("judged", I64, HERS, "messages of hers that a check judged"),
    Column("accused", I64, HERS, "those that it accused"),
)
TABLES = {"owners": OWNERS, "ledger": LEDGER}
NEEDED = {  # columns that every version has written
    "owners": ("owner", "family", "rate", "privacy_budget"),
    "ledger": ("owner", "privacy_sold", "gradients", "earned"),
}


def table_schema(name: str) -> pa.Schema:
    """The columns of a table for Arrow; names are strings."""
    return pa.schema([(c.name, c.type if c.names is None else pa.string()) for c in TABLES[name]])


def columns_of_owner(name: str) -> tuple[str, ...]:
    """The columns that an owner sees in her own row."""
    return tuple(column.name for column in TABLES[name] if column.seen is not Seen.NOBODY)
