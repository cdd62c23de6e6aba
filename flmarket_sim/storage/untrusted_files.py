"""Reads files that may be damaged or malicious, and refuses them with a clear message."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pydantic

from flmarket_sim.errors import InputError, shortened
from flmarket_sim.storage.arrow_memory import arrow_reader
from flmarket_sim.storage.parquet_pages import Frame, frame_in, frame_of

LARGE_MEMORY = 64 * 2**30
SMALL_FILE, RATIO = 256 * 2**20, 200  # memory of any file of ours, and more for each of its bytes


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. A missing file raises FileNotFoundError."""
    try:
        return parsed_json(path, path.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {shortened(str(error))}") from None


def parsed_json(path: Path, text: bytes) -> dict[str, Any]:
    """The object that the bytes of a JSON file stand for."""
    try:
        content = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
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


def read_parquet(
    path: Path,
    schema: pa.Schema | None = None,
    known_only: bool = False,
    most: int | None = None,
    frame: str | None = None,
) -> pa.Table:
    """The table of a Parquet file. Columns that `schema` names must have its types if they exist.

    (Columns may be missing, since later versions add columns.) With `known_only`, a column that the
    schema does not name is refused. Checksums of pages are verified. A few bytes can stand for more
    values than fit into memory: a file that would take more than `most` bytes is refused before it
    is unpacked. By default that is what files of ours can take. `frame` is the hash that the file
    must have of all but the content of its pages, which has checksums.
    """
    limit = _limit(path) if most is None else most
    try:
        content = path.read_bytes()  # once, for the headers of pages and for the decoder
        file = _parquet(content)
        _check_frame(path, frame_in(content, file.metadata), limit, frame)
        if schema is not None:
            check_columns(path, file.schema_arrow, schema, known_only)
        texts = [field for field in file.schema_arrow if _is_text(field.type)]
        if texts:  # a text that is there many times is kept once, until its size is known
            names = [field.name for field in texts]
            file = _parquet(content, read_dictionary=names)
        table = file.read()
        table.validate(full=True)
        for field in texts:
            table = _spelled_out(path, table, field, limit)
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(f"{path} cannot be read: {shortened(str(error))}") from None
    return table


def check_parquet(
    path: Path, schema: pa.Schema, known_only: bool = False, checksums: bool = False
) -> int:
    """Refuses what `read_parquet` would refuse, as far as this shows without decoding.

    Returns the number of rows. It is for files that others decode.
    """
    try:
        file = _opened(path, _limit(path), checksums)
    except FileNotFoundError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:
        raise InputError(f"{path} cannot be read: {shortened(str(error))}") from None
    check_columns(path, file.schema_arrow, schema, known_only)
    return int(file.metadata.num_rows)


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


def _opened(path: Path, limit: int, checksums: bool) -> pq.ParquetFile:
    """A file that can be decoded within a limit."""
    file = pq.ParquetFile(path)
    _check_frame(path, frame_of(path, file.metadata, checksums), limit)
    return file


def _parquet(content: bytes, **options: Any) -> pq.ParquetFile:
    """A file with these bytes, whose checksums the decoder verifies."""
    return pq.ParquetFile(arrow_reader(content), page_checksum_verification=True, **options)


def _check_frame(path: Path, found: Frame, limit: int, wanted: str | None = None) -> None:
    """Refuses a file that is another one, or takes more memory than the limit or this machine."""
    needed, actual = found
    if wanted not in (None, actual):
        raise ValueError("it is damaged, or of another run")
    if needed > min(limit, _memory()):
        raise InputError(
            f"{path} would take {needed / 2**30:,.1f} GB of memory: "
            "it is damaged, or too large for this machine"
        )


def _limit(path: Path) -> int:
    """The most memory that a file of ours can take, by its size: constant columns are small."""
    return SMALL_FILE + RATIO * path.stat().st_size


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _spelled_out(path: Path, table: pa.Table, field: pa.Field, limit: int) -> pa.Table:
    """The table with a column of texts in place of one that has each text once."""
    place = table.schema.get_field_index(field.name)
    column = table.column(place)
    needed = sum(
        pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )
    if needed > limit:
        raise InputError(
            f"{path} would take {needed / 2**30:,.1f} GB of memory: column {field.name!r} repeats "
            "long texts; it is damaged"
        )
    return table.set_column(place, field, column.cast(field.type))


def check_columns(
    path: Path, actual: pa.Schema, schema: pa.Schema, known_only: bool = False
) -> None:
    """Refuses columns that are there twice, have another type than in `schema`, or are not in it
    where only known ones are allowed."""
    names = actual.names
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} is damaged: it has column {twice[0]!r} twice")
    if known_only and (unknown := [name for name in names if name not in schema.names]):
        raise InputError(
            f"{path} has a column {shortened(unknown[0])!r}, which this version does not know: it "
            "is damaged, or a later version wrote it"
        )
    for field in schema:
        if field.name in names and not _alike(actual.field(field.name).type, field.type):
            raise InputError(
                f"{path} is damaged: column {field.name!r} is {actual.field(field.name).type}, "
                f"not {field.type}"
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


def _memory() -> int:
    """The bytes of this machine's memory; a system that does not say counts as a large one."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return LARGE_MEMORY
