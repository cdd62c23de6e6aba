"""Reads the user's CSV and Parquet files into Arrow tables: bounded, and nothing is evaluated."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from flmarket_sim.errors import InputError, shortened, shown
from flmarket_sim.storage.arrow_memory import arrow_reader
from flmarket_sim.storage.untrusted_files import fits_memory, read_parquet

LARGEST_CSV = 2**30  # bytes; a CSV file is read as one block, so that a column has one type
MEMORY_OF_CSV = 4  # times its size
MISSING_TEXTS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
SAMPLE = 20  # texts that are tried as numbers before all are
DELIMITERS = ";\t|,"
ALL_MEMORY = 2**62  # the user's own data may take all that there is


@dataclass(frozen=True)
class CsvDialect:
    """How a CSV file is written."""

    delimiter: str = ","
    header: bool = True
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING_TEXTS


def existing_file(path: str) -> Path:
    """The path of a file; a relative path begins at the working directory."""
    found = Path(path)
    try:
        if found.is_file():
            return found
        what = "is a directory" if found.is_dir() else "does not exist"
    except (OSError, ValueError):  # a text that cannot be a path
        what = "is not a path"
    begin = "" if found.is_absolute() else f"; relative paths begin at {Path.cwd()}"
    raise InputError(f"the data file {shown(path)} {what}{begin}")


def file_sha256(path: Path) -> str:
    """The SHA-256 of what a file holds."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def read_parquet_table(path: Path) -> pa.Table:
    """The table of a Parquet file, checked before it is unpacked."""
    return read_parquet(path, most=ALL_MEMORY)


def read_csv_table(path: Path, dialect: CsvDialect) -> pa.Table:
    """The table of a CSV file; texts are stripped, and those that mean "missing" are null."""
    _check_dialect(dialect)
    return parse_csv(_csv_bytes(path), path, dialect)


def parse_csv(content: bytes, path: object, dialect: CsvDialect) -> pa.Table:
    """The table of a CSV text; `path` is what messages call it."""
    read = pyarrow.csv.ReadOptions(
        block_size=len(content) + 2**16,
        encoding=dialect.encoding,
        autogenerate_column_names=not dialect.header,
    )
    parse = pyarrow.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True)
    convert = pyarrow.csv.ConvertOptions(
        null_values=list(dialect.missing), strings_can_be_null=True
    )
    try:
        source = arrow_reader(content)
        table = pyarrow.csv.read_csv(
            source, read_options=read, parse_options=parse, convert_options=convert
        )
        names = _column_names(path, table.column_names)
    except (pa.ArrowException, UnicodeError) as error:
        raise InputError(
            f"{path} is not a CSV file in {dialect.encoding} with {dialect.delimiter!r} between "
            f"its fields: {shortened(str(error))}"
        ) from None
    if len(names) == 1 and (other := _another_delimiter(names[0], dialect.delimiter)):
        raise InputError(
            f"{path} has one column, {shown(names[0])}; if fields are separated by {other!r}, "
            f"write delimiter = {_toml(other)}"
        )
    columns = [_clean(column, dialect.missing) for column in table.columns]
    return pa.Table.from_arrays(columns, names=names)


def _csv_bytes(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > LARGEST_CSV or not fits_memory(MEMORY_OF_CSV * size):
            raise InputError(
                f"{path} has {size / 2**30:,.2f} GB, and a CSV file may have at most "
                f"{LARGEST_CSV / 2**30:g} GB and a quarter of the memory; convert it to Parquet "
                '(name = "parquet"), or take a sample of it'
            )
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not content.strip():
        raise InputError(f"{path} is empty")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f'{path} is in UTF-16; save it as UTF-8, or write encoding = "utf-16"')
    if content.startswith((b"PAR1", b"\x1f\x8b", b"PK\x03\x04")):
        kind = {b"P": "Parquet or a zip archive", b"\x1f": "compressed"}[content[:1]]
        raise InputError(f"{path} is no CSV file: its content is {kind}")
    return content


def _check_dialect(dialect: CsvDialect) -> None:
    if len(dialect.delimiter) != 1 or not dialect.delimiter.isascii():
        raise InputError(f"data: delimiter must be one character, got {shown(dialect.delimiter)}")
    try:
        codecs.lookup(dialect.encoding)
    except (LookupError, ValueError):
        raise InputError(
            f"data: there is no encoding {shown(dialect.encoding)}; for instance utf-8, latin-1"
        ) from None


def _column_names(path: object, names: Iterable[str]) -> list[str]:
    stripped = [name.strip().removeprefix("\ufeff").strip() for name in names]
    for number, name in enumerate(stripped, 1):
        if not name:
            raise InputError(
                f"{path}: column {number} has no name in the first line; name it, or write "
                "header = false if the first line is a record"
            )
    return stripped


def _another_delimiter(name: str, used: str) -> str | None:
    return next((sign for sign in DELIMITERS if sign != used and sign in name), None)


def _toml(text: str) -> str:
    return '"\\t"' if text == "\t" else f'"{text}"'


def _clean(column: pa.ChunkedArray, missing: tuple[str, ...]) -> pa.ChunkedArray:
    """Texts without spaces around them, null where they mean so, and numbers if all are."""
    if not pa.types.is_string(column.type):
        return column
    texts = pc.utf8_trim_whitespace(column)
    texts = pc.if_else(pc.is_in(texts, value_set=pa.array(missing, pa.string())), None, texts)
    if texts.null_count == len(texts):
        return pa.chunked_array([pa.nulls(len(texts))])
    try:
        texts.drop_null()[:SAMPLE].cast(pa.float64())  # a cast that fails late is slow
        return texts.cast(pa.float64())
    except pa.ArrowException:
        return texts
