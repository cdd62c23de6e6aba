"""Every event of a run in Parquet: schema, writer, reader."""

from flmarket_sim.eventlog.reader import read_events, read_ledger, read_owners, read_run, sql
from flmarket_sim.eventlog.schema import BROKER, KINDS, buyer_id
from flmarket_sim.eventlog.view import write_view
from flmarket_sim.eventlog.writer import EventLog

__all__ = [
    "BROKER",
    "KINDS",
    "EventLog",
    "buyer_id",
    "read_events",
    "read_ledger",
    "read_owners",
    "read_run",
    "sql",
    "write_view",
]
