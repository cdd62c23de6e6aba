"""Reads a run: events of a kind as an Arrow table, owners, run.json, and SQL over all of it.

A run that is not finished reads up to its last noted round: parts, then what its journal has.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError, shown
from flmarket_sim.eventlog.journal import journals, read_journal
from flmarket_sim.eventlog.schema import ENVELOPE, KINDS, arrow_schema
from flmarket_sim.storage.untrusted_files import read_json, read_parquet, require_columns

OWNERS = pa.schema(
    [
        ("owner", pa.int32()),
        ("family", pa.string()),
        ("rate", pa.float64()),
        ("privacy_budget", pa.float64()),
    ]
)
LEDGER = pa.schema(
    [
        ("owner", pa.int32()),
        ("privacy_sold", pa.float64()),
        ("gradients", pa.int64()),
        ("earned", pa.float64()),
    ]
)


def read_run(run: str | os.PathLike[str]) -> dict[str, Any]:
    """What run.json says: scenario, hashes, versions, outcome."""
    path = Path(run) / "run.json"
    try:
        return read_json(path)
    except FileNotFoundError:
        raise InputError(f"{run} is not the directory of a run: it has no run.json") from None


def read_events(run: str | os.PathLike[str], kind: str) -> pa.Table:
    """All events of a kind, in order. A kind without events is an empty table with the columns of its schema."""
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no event kind {kind!r}{hint} Kinds: {', '.join(KINDS)}")
    info = read_run(run)
    parts, later = event_files(Path(run), [kind])[kind]
    tables = [read_part(part, kind) for part in parts]
    try:
        tables += [] if later is None else [later]
        found = (
            pa.concat_tables(tables).unify_dictionaries()
            if tables
            else arrow_schema(kind, ()).empty_table()
        )
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the events of kind {kind!r} in {run} cannot be read: {error}") from None
    refuse_losses(run, info, kind, len(found))
    return found


def read_part(part: Path, kind: str) -> pa.Table:
    """One part of a log, refused where it cannot be one."""
    table = read_parquet(part, arrow_schema(kind, ()))
    require_columns(part, table, [column.name for column in ENVELOPE])
    if empty := [column.name for column in ENVELOPE if table.column(column.name).null_count]:
        raise InputError(f"{part} is damaged: column {empty[0]!r} has rows without a value")
    return table


def refuse_losses(run: str | os.PathLike[str], info: dict[str, Any], kind: str, rows: int) -> None:
    """A finished run has as many events of a kind as it says."""
    log = info.get("log")
    kinds = (
        log.get("kinds") if isinstance(log, dict) and info.get("outcome") == "finished" else None
    )
    said = kinds.get(kind) if isinstance(kinds, dict) else None
    wanted = said.get("rows") if isinstance(said, dict) else rows
    if wanted != rows:
        raise InputError(
            f"{run} is finished and had {shown(wanted)} events of kind {kind!r}, but {rows:,} are there: files were lost or damaged. "
            "Run the scenario again: the same seed gives the same bytes"
        )


def event_parts(run: str | os.PathLike[str], kind: str) -> list[Path]:
    """The files of a kind, in order."""
    return sorted((Path(run) / "events" / f"kind={kind}").glob("part-*.parquet"))


def read_owners(run: str | os.PathLike[str]) -> pa.Table:
    """Who the owners truly are: one row an owner."""
    return _read_table(run, "owners.parquet", OWNERS)


def read_ledger(run: str | os.PathLike[str]) -> pa.Table:
    """What every owner sold and earned over the run: one row an owner."""
    return _read_table(run, "ledger.parquet", LEDGER)


def _read_table(run: str | os.PathLike[str], name: str, schema: pa.Schema) -> pa.Table:
    info = read_run(run)
    if "view" in info and not (Path(run) / name).exists():
        raise InputError(
            f"{run} is the view of {info['view']}, who does not know what a run has in {name}"
        )
    try:
        table = read_parquet(Path(run) / name, schema)
    except FileNotFoundError as error:
        raise InputError(f"{Path(run) / name} cannot be read: {error}") from None
    require_columns(Path(run) / name, table, schema.names)
    return table


def event_files(run: Path, kinds: list[str]) -> dict[str, tuple[list[Path], pa.Table | None]]:
    """The parts of each kind, and what a journal has after them. The run may be going on meanwhile."""
    folder = run / "events"
    noted: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    try:
        for number, path in journals(folder).items():
            noted[number] = read_journal(path).batches
    except FileNotFoundError:  # its part was written this moment
        return event_files(run, kinds)
    except OSError as error:
        raise InputError(f"a journal in {folder} cannot be read: {error}") from None
    found: dict[str, tuple[list[Path], pa.Table | None]] = {}
    for kind in kinds:
        parts = event_parts(run, kind)
        names = {part.stem for part in parts}
        later = [
            batch
            for number, by_kind in noted.items()
            if f"part-{number:05d}" not in names
            for batch in by_kind.get(kind, [])
        ]
        found[kind] = parts, pa.Table.from_batches(later) if later else None
    return found


def sql(run: str | os.PathLike[str], query: str) -> pa.Table:
    """SQL (DuckDB) over a run: every kind of event is a table of its name; `owners` and `ledger` are tables too.

    `round` rows are also called `rounds`, since ROUND is a function of SQL. Parts are read as far as the query needs them.
    """
    import duckdb

    read_run(run)
    with duckdb.connect() as database:
        for kind, (parts, later) in event_files(Path(run), list(KINDS)).items():
            name = f"{kind}s" if kind == "round" else kind
            if parts:
                _view(database, name if later is None else f"{name} in parts", parts)
            if later is not None or not parts:
                database.register(
                    f"{name} in journal" if parts else name,
                    arrow_schema(kind, ()).empty_table() if later is None else later,
                )
            if parts and later is not None:
                database.execute(
                    f'create view "{name}" as from "{name} in parts" union all from "{name} in journal"'
                )
        for name in ("owners", "ledger"):
            if (path := Path(run) / f"{name}.parquet").exists():
                _view(database, name, [path])
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


def _view(database: Any, name: str, files: list[Path]) -> None:
    """A table of files; DuckDB would take stars and brackets in their names for patterns."""
    import duckdb

    try:
        database.read_parquet(
            [re.sub(r"([*?\[])", r"[\1]", str(file)) for file in files]
        ).create_view(name)
    except duckdb.Error as error:
        raise InputError(f"{files[0].parent} cannot be read: {error}") from None
