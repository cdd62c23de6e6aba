"""SQL that cannot leave its room: it reads the files of one run, and nothing else.

DuckDB can read and write any file, load extensions and open connections. A database that was locked
in cannot: no other file, no writing, no extension, no other setting. One statement is allowed that
asks for rows, since a file that may be read may also be written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError

SETTINGS = (
    "SET temp_directory = ''",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
)


def lock_in(database: Any, files: Sequence[Path], limits: Sequence[str] = ()) -> None:
    """From now on the connection reads these files alone. `limits` are further SET statements."""
    for setting in (*SETTINGS, *limits):
        database.execute(setting)
    names = dict.fromkeys(name for file in files for name in (file.as_posix(), as_pattern(file)))
    allowed = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    database.execute(f"SET allowed_paths = [{allowed}]")
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")


def as_pattern(file: Path) -> str:
    """The pattern that matches this file alone: DuckDB takes every name of a file for a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", file.as_posix())


def valid_text(query: str) -> str:
    """The query, if it can be written in UTF-8: DuckDB takes no other text."""
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"SQL: the query is not valid text ({error.reason})") from None
    return query


def only_a_question(query: str, advice: str = "") -> None:
    """Refuses everything but one statement that asks for rows. `advice` ends the message."""
    import duckdb

    statements = duckdb.extract_statements(valid_text(query))
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(
            f"SQL: ask one question that begins with SELECT, FROM, WITH or DESCRIBE{advice}"
        )
