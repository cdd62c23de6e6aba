"""Reads files that may be damaged or malicious, and refuses them with a clear message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pydantic

from flmarket_sim.errors import InputError, shortened

LARGE_MEMORY = 64 * 2**30


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. A missing file raises FileNotFoundError."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {shortened(str(error))}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold an object")
    return content


def check_shape(path: Path, content: dict[str, Any], shape: type[pydantic.BaseModel]) -> None:
    """Refuses the content of a JSON file that has other types than `shape` says."""
    try:
        shape.model_validate(content)
    except pydantic.ValidationError as error:
        raise InputError(f"{path} is damaged: {first_problem(error)}") from None


def first_problem(error: pydantic.ValidationError) -> str:
    """The first thing that is wrong, in one line: its place and what was expected."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = first["msg"][:1].lower() + first["msg"][1:]
    return shortened(f"{place}: {message}" if place else message)


def fits_memory(needed: int) -> bool:
    """Whether so many bytes are fewer than this machine has."""
    return needed <= _memory()


def read_parquet(path: Path, schema: pa.Schema | None = None) -> pa.Table:
    """The table of a Parquet file. Columns that `schema` names must have its types if they exist.

    (Columns may be missing, since later versions add columns.) A few bytes can stand for more rows
    than fit into memory, so such a file is refused before it is unpacked.
    """
    try:
        file = pq.ParquetFile(path)
        needed = file.metadata.num_rows * sum(_width(field.type) for field in file.schema_arrow)
        if needed > _memory():
            raise InputError(
                f"{path} would take {needed / 2**30:,.0f} GB of memory: "
                "it is damaged, or too large for this machine"
            )
        table = file.read()
        table.validate(full=True)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, UnicodeDecodeError, OverflowError) as error:
        raise InputError(f"{path} cannot be read: {shortened(str(error))}") from None
    if schema is not None:
        check_columns(path, table, schema)
    return table


def rows_of(what: object, table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as Python objects; `what` is where they come from, for messages.

    Arrow knows dates that Python does not: before the year 1, and after 9999.
    """
    rows: list[dict[str, Any]] = []
    try:
        rows = table.to_pylist()
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise InputError(
            f"{what} has a value that Python cannot hold ({shortened(str(error))}). As a text it "
            "can be read; in SQL: CAST(... AS VARCHAR)"
        ) from None
    return rows


def check_columns(path: Path, table: pa.Table, schema: pa.Schema) -> None:
    """Refuses a table that has a column twice, or a column of another type than the schema."""
    names = table.column_names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} is damaged: it has column {twice[0]!r} twice")
    for field in schema:
        if field.name in names and not _alike(table.schema.field(field.name).type, field.type):
            actual = table.schema.field(field.name).type
            raise InputError(
                f"{path} is damaged: column {field.name!r} is {actual}, not {field.type}"
            )


def require_columns(path: Path, table: pa.Table, names: Iterable[str]) -> None:
    """Refuses a table without one of these columns."""
    if missing := [name for name in names if name not in table.column_names]:
        raise InputError(f"{path} is damaged: it has no column {missing[0]!r}")


def _alike(actual: pa.DataType, expected: pa.DataType) -> bool:
    """Equal types; a dictionary counts as the type of its values."""
    return bool(_plain(actual) == _plain(expected))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _width(kind: pa.DataType) -> int:
    """The least number of bytes of a value in memory."""
    return max(1, kind.bit_width // 8) if pa.types.is_primitive(kind) else 4


def _memory() -> int:
    """The bytes of this machine's memory; a system that does not say counts as a large one."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return LARGE_MEMORY
