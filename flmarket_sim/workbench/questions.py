"""SQL about a run, asked in the browser: it reads this run, and nothing else.

A question is locked in (eventlog/sql_room.py). In the browser it also has little memory, one
thread, a time limit and a limit on rows.
"""

from __future__ import annotations

import math
import threading
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.reader import register_tables
from flmarket_sim.eventlog.sql_room import lock_in, only_a_question

ROWS = 10_000
SECONDS = 10.0
LONGEST = 20_000  # letters of a question
LARGEST_CELL = 2_000  # letters of a text in the answer
LIMITS = ("SET memory_limit = '1GB'", "SET threads = 1")


def ask(run: Path, query: str, rows: int = ROWS, seconds: float = SECONDS) -> dict[str, Any]:
    """The answer to a question: columns, at most `rows` rows, and whether more were left out."""
    if len(query) > LONGEST:
        raise InputError(f"SQL: a question has at most {LONGEST:,} letters")
    began = time.perf_counter()
    with duckdb.connect() as database:
        files = register_tables(database, run)
        lock_in(database, files, LIMITS)
        alarm = threading.Timer(seconds, database.interrupt)
        alarm.start()
        try:
            only_a_question(query)
            table = database.sql(query).limit(rows + 1).to_arrow_table()
        except duckdb.InterruptException:
            raise InputError(
                f"SQL: the question took longer than {seconds:g} seconds; ask for less, or use "
                "`flmarket sql`"
            ) from None
        except (duckdb.Error, RuntimeError) as error:
            raise InputError(f"SQL: {error}") from None
        finally:
            alarm.cancel()
    return {
        "columns": table.column_names,
        "rows": _rows(table.slice(0, rows)),
        "cut": len(table) > rows,
        "seconds": round(time.perf_counter() - began, 3),
    }


def _rows(table: pa.Table) -> list[list[Any]]:
    columns = [[_cell(value) for value in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(value: Any) -> Any:
    """A value as JSON can hold it."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    text = value.isoformat() if isinstance(value, date | datetime) else str(value)
    return text[:LARGEST_CELL]
