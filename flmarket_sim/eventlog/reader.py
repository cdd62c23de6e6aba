"""Reads a run: events of a kind as an Arrow table, owners, run.json, and SQL over all of it."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.schema import KINDS, arrow_schema


def read_run(run: str | Path) -> dict[str, Any]:
    """What run.json says: scenario, hashes, versions, outcome."""
    path = Path(run) / "run.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{run} is not the directory of a run: it has no run.json") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not describe a run")
    return content


def read_events(run: str | Path, kind: str) -> pa.Table:
    """All events of a kind, in order. A kind without events is an empty table with the columns of its schema."""
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no event kind {kind!r}{hint} Kinds: {', '.join(KINDS)}")
    read_run(run)
    parts = sorted((Path(run) / "events" / f"kind={kind}").glob("part-*.parquet"))
    if not parts:
        return arrow_schema(kind, ()).empty_table()
    try:
        return pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).unify_dictionaries()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the events of kind {kind!r} in {run} cannot be read: {error}") from None


def read_owners(run: str | Path) -> pa.Table:
    """Who the owners truly are: one row an owner."""
    return _read_table(run, "owners.parquet")


def read_ledger(run: str | Path) -> pa.Table:
    """What every owner sold and earned over the run: one row an owner."""
    return _read_table(run, "ledger.parquet")


def _read_table(run: str | Path, name: str) -> pa.Table:
    read_run(run)
    try:
        return pq.ParquetFile(Path(run) / name).read()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{Path(run) / name} cannot be read: {error}") from None


def sql(run: str | Path, query: str) -> pa.Table:
    """SQL (DuckDB) over a run: every kind of event is a table of its name; `owners` and `ledger` are tables too.

    `round` rows are also called `rounds`, since ROUND is a function of SQL.
    """
    import duckdb

    read_run(run)
    with duckdb.connect() as database:
        for kind in KINDS:
            database.register(f"{kind}s" if kind == "round" else kind, read_events(run, kind))
        database.register("owners", read_owners(run))
        if (Path(run) / "ledger.parquet").exists():
            database.register("ledger", read_ledger(run))
        try:
            found = database.sql(query)
        except duckdb.Error as error:
            raise InputError(f"SQL: {error}") from None
        if found is None:
            raise InputError(f"SQL: {query!r} gives no table; ask a SELECT")
        try:
            return found.to_arrow_table()
        except duckdb.Error as error:  # some errors show only as the rows are made
            raise InputError(f"SQL: {error}") from None
