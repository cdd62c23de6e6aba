"""Every event of a run in Parquet: schema, writer, reader."""

from flmarket_sim.eventlog.log import Log
from flmarket_sim.eventlog.model_files import read_model, read_models
from flmarket_sim.eventlog.parquet_log import ParquetLog
from flmarket_sim.eventlog.participant_view import write_view
from flmarket_sim.eventlog.reader import read_events, read_ledger, read_owners, read_run, sql
from flmarket_sim.eventlog.schema import BROKER, KINDS, buyer_id

__all__ = [
    "BROKER",
    "KINDS",
    "Log",
    "ParquetLog",
    "buyer_id",
    "read_events",
    "read_ledger",
    "read_model",
    "read_models",
    "read_owners",
    "read_run",
    "sql",
    "write_view",
]
