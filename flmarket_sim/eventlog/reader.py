"""Reads a run: events of a kind as an Arrow table, owners, run.json, and SQL over all of it.

A finished run is read only as it was written: files that are lost, damaged or of another run are
refused by name. A run that is not finished can be read up to the last round in its journal.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import InputError, shown
from flmarket_sim.eventlog.journal import journals, read_journal
from flmarket_sim.eventlog.run_files import check_files, check_own, known_hashes, own_parts
from flmarket_sim.eventlog.run_info import FILES, FRAMES, read_info
from flmarket_sim.eventlog.schema import ENVELOPE, KINDS, arrow_schema
from flmarket_sim.eventlog.sql_room import as_pattern, lock_in, only_a_question, valid_text
from flmarket_sim.eventlog.tables import NEEDED, table_schema
from flmarket_sim.plugins.plugin_files import find_again
from flmarket_sim.scenario.later_keys import as_it_was_meant
from flmarket_sim.scenario.model import Scenario, without_nulls
from flmarket_sim.scenario.scenario_file import build_scenario
from flmarket_sim.storage.untrusted_files import check_parquet, read_parquet, require_columns


def read_run(run: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of run.json: scenario, hashes, versions, outcome."""
    try:
        info = read_info(Path(run))
    except FileNotFoundError:
        raise InputError(f"{run} is not the directory of a run: it has no run.json") from None
    check_own(Path(run), info)
    return info


def read_scenario(run: str | os.PathLike[str]) -> Scenario:
    """The scenario of a run, as run.json has it. Its plug-ins are imported."""
    info, where = read_run(run), Path(run) / "run.json"
    if "view" in info:
        raise InputError(f"{run} is the view of {info['view']}, who does not know the scenario")
    if not isinstance(info.get("scenario"), dict):
        raise InputError(f"{where} does not describe a run; start again with `flmarket run`")
    find_again(info.get("plugins"))
    tables = without_nulls(as_it_was_meant(info["scenario"]))
    if info.get("repeatable") is False:
        tables.pop("seed", None)  # beside hardened noise no seed may be given
    scenario = build_scenario(tables, str(where), with_data=False)
    if scenario.digest() != info.get("scenario_sha256"):
        raise InputError(
            f"{where}: the scenario does not have the hash that is stored beside it; it was "
            "changed, or this version reads it differently"
        )
    return scenario


def read_events(run: str | os.PathLike[str], kind: str) -> pa.Table:
    """All events of a kind, in order. A kind without events is an empty table with its columns."""
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no event kind {kind!r}{hint} Kinds: {', '.join(KINDS)}")
    info = read_run(run)
    parts, later = event_files(Path(run), [kind], info)[kind]
    tables = _checked_parts(run, info, kind, parts)
    try:
        tables += [] if later is None else [later]
        events = (
            pa.concat_tables(tables).unify_dictionaries()
            if tables
            else arrow_schema(kind, ()).empty_table()
        )
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the events of kind {kind!r} in {run} cannot be read: {error}") from None
    refuse_losses(run, info, kind, len(events))
    return events


def _checked_parts(
    run: str | os.PathLike[str], info: dict[str, Any], kind: str, parts: list[Path]
) -> list[pa.Table]:
    """The tables of parts that are those of the run.

    In a finished run the hash of a file's frame, and the checksums of its pages while they are
    decoded, say so; the hash of a whole file would cost ten times as much.
    """
    frames = info.get(FRAMES, {})
    names = [part.relative_to(run).as_posix() for part in parts]
    if not frames.keys() >= set(names):
        check_files(run, info, parts)
    try:
        pairs = zip(parts, names, strict=True)
        return [read_part(part, kind, frames.get(name)) for part, name in pairs]
    except InputError:
        check_files(run, info, parts)
        raise


def read_part(part: Path, kind: str, frame: str | None = None) -> pa.Table:
    """Reads one part of a log, and refuses a file that cannot be a part."""
    table = read_parquet(part, arrow_schema(kind, ()), known_only=True, frame=frame)
    require_columns(part, table, [column.name for column in ENVELOPE])
    if empty := [column.name for column in ENVELOPE if table.column(column.name).null_count]:
        raise InputError(f"{part} is damaged: column {empty[0]!r} has rows without a value")
    return table


def refuse_losses(run: str | os.PathLike[str], info: dict[str, Any], kind: str, rows: int) -> None:
    """Refuses a finished run that has another number of events of a kind than run.json says."""
    log = info.get("log")
    kinds = (
        log.get("kinds") if isinstance(log, dict) and info.get("outcome") == "finished" else None
    )
    stored = kinds.get(kind) if isinstance(kinds, dict) else None
    wanted = stored.get("rows") if isinstance(stored, dict) else rows
    if wanted != rows:
        raise InputError(
            f"{run} is finished and had {shown(wanted)} events of kind {kind!r}, but {rows:,} are "
            "there: files were lost or damaged. Run the scenario again: the same seed gives the "
            "same bytes"
        )


def event_parts(run: str | os.PathLike[str], kind: str) -> list[Path]:
    """The files of a kind, in order."""
    return sorted((Path(run) / "events" / f"kind={kind}").glob("part-*.parquet"))


def read_owners(run: str | os.PathLike[str]) -> pa.Table:
    """The true types of the owners, a row for each; in a market with learning their records too."""
    return _read_table(run, "owners")


def read_ledger(run: str | os.PathLike[str]) -> pa.Table:
    """What the owners sold and earned over the run, a row for each."""
    return _read_table(run, "ledger")


def _read_table(run: str | os.PathLike[str], name: str) -> pa.Table:
    info, path = read_run(run), Path(run) / f"{name}.parquet"
    if "view" in info and not path.exists() and path.name not in info.get(FILES, {}):
        raise InputError(
            f"{run} is the view of {info['view']}, who does not know what a run has in {path.name}"
        )
    check_files(run, info, [path])
    try:
        table = read_parquet(path, table_schema(name), known_only=True)
    except FileNotFoundError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    require_columns(path, table, NEEDED[name])
    return table


def event_files(
    run: Path, kinds: list[str], info: dict[str, Any] | None = None
) -> dict[str, tuple[list[Path], pa.Table | None]]:
    """The parts of each kind, and the later events in a journal. The run may still be going on.

    `info` is its run.json, if it is read already.
    """
    folder, info = run / "events", read_run(run) if info is None else info
    noted: dict[int, dict[str, list[pa.RecordBatch]]] = {}
    try:
        for number, path in ({} if FILES in info else journals(folder)).items():
            noted[number] = read_journal(path, strict=True).batches
    except FileNotFoundError:  # its part was written this moment
        return event_files(run, kinds)
    except OSError as error:
        raise InputError(f"a journal in {folder} cannot be read: {error}") from None
    files: dict[str, tuple[list[Path], pa.Table | None]] = {}
    found = {kind: event_parts(run, kind) for kind in kinds}
    in_journal = {f"part-{number:05d}" for number in noted}
    for kind, parts in own_parts(run, info, found, in_journal).items():
        names = {part.stem for part in parts}
        later = [
            batch
            for number, by_kind in noted.items()
            if f"part-{number:05d}" not in names
            for batch in by_kind.get(kind, [])
        ]
        files[kind] = parts, pa.Table.from_batches(later) if later else None
    return files


def sql(run: str | os.PathLike[str], query: str, *, unsafe: bool = False) -> pa.Table:
    """SQL (DuckDB) over a run: every kind of event is a table; so are `owners` and `ledger`.

    The table of `round` events is called `rounds`, because ROUND is a function of SQL. DuckDB reads
    from the parts only what the query needs. A query is one question about this run: it reads no
    other file, writes none, and changes no setting. `unsafe` allows everything that DuckDB can do.
    """
    import duckdb

    valid_text(query)
    with duckdb.connect() as database:
        files = register_tables(database, run, query)
        try:
            if not unsafe:
                lock_in(database, files)
                only_a_question(query, "; `unsafe` allows every statement of DuckDB")
            result = database.sql(query)
        except (duckdb.Error, UnicodeDecodeError) as error:
            raise InputError(f"SQL: {_with_advice(error, unsafe)}") from None
        if result is None:
            raise InputError(f"SQL: {query!r} gives no table; ask a SELECT")
        try:
            return result.to_arrow_table()
        except (
            duckdb.Error,
            pa.ArrowException,
            ValueError,
            RuntimeError,
        ) as error:  # some errors show only as the rows are made
            raise InputError(f"SQL: {_with_advice(error, unsafe)}") from None


def _with_advice(error: Exception, unsafe: bool) -> str:
    import duckdb

    if unsafe or not isinstance(error, duckdb.PermissionException):
        return str(error)
    return f"{error}. A query reads this run and no other file; `unsafe` allows it"


def register_tables(
    database: Any, run: str | os.PathLike[str], query: str | None = None
) -> list[Path]:
    """Makes the tables of a run known to a DuckDB connection. Returns the files that it may read.

    DuckDB checks nothing, so files are checked here: those of the tables that the query names, or
    all of them if it names files. It may read no others.
    """
    info = read_run(run)
    asked = _asked(query)
    files: list[Path] = []
    for kind, (parts, later) in event_files(Path(run), list(KINDS)).items():
        name = f"{kind}s" if kind == "round" else kind
        if asked is None or name in asked:
            files += parts
            check_files(run, info, parts)
            check_parts(run, info, kind, parts, later)
        if parts:
            _view(database, run, name if later is None else f"{name} in parts", parts)
        if later is not None or not parts:
            database.register(
                f"{name} in journal" if parts else name,
                arrow_schema(kind, ()).empty_table() if later is None else later,
            )
        if parts and later is not None:
            both = f'from "{name} in parts" union all from "{name} in journal"'
            database.execute(f'create view "{name}" as {both}')
    for name in ("owners", "ledger"):
        if (path := Path(run) / f"{name}.parquet").exists() or path.name in info.get(FILES, {}):
            if asked is None or name in asked:
                files.append(path)
                check_files(run, info, [path])
                check_parquet(path, table_schema(name), known_only=True, checksums=True)
            _view(database, run, name, [path])
        elif query is not None and name in (asked or ()):
            raise InputError(
                f"{path} is not there: it is lost, or the run has not written it yet, or this is "
                "the view of somebody who does not know it"
            )
    return files


def _asked(query: str | None) -> set[str] | None:
    """The tables that a query names; None if this is unknown, as of one that names files."""
    import duckdb

    if query is None:
        return None
    try:
        with duckdb.connect(config={"enable_external_access": False}) as nowhere:
            return {name.lower() for name in nowhere.get_table_names(query)}
    except (duckdb.Error, RuntimeError):
        return None


def check_parts(
    run: str | os.PathLike[str],
    info: dict[str, Any],
    kind: str,
    parts: list[Path],
    later: pa.Table | None,
) -> None:
    """Refuses parts that cannot be decoded safely, and a kind that has lost rows."""
    unhashed = known_hashes(run, info) is None
    schema = arrow_schema(kind, ())
    rows = sum(check_parquet(part, schema, known_only=True, checksums=unhashed) for part in parts)
    refuse_losses(run, info, kind, rows + (0 if later is None else len(later)))


def _view(database: Any, run: str | os.PathLike[str], name: str, files: list[Path]) -> None:
    """Makes a table of files."""
    import duckdb

    try:
        database.read_parquet([as_pattern(file) for file in files]).create_view(name)
    except (duckdb.Error, UnicodeDecodeError) as error:
        check_files(run, read_run(run), files)
        raise InputError(f"{files[0].parent} cannot be read: {error}") from None
