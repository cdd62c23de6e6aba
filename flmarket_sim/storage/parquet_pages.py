"""The pages of a Parquet file, as their headers say: how much memory decoding them can take.

A few bytes of a page can stand for a thousand million values, and what the file's footer says about
sizes is not binding. The headers of the pages are: a decoder makes as many values as they say. So
they are added up before anything is decoded. A header is a struct in Thrift's compact protocol:

    1 type   2 uncompressed size   3 compressed size   4 CRC-32   5, 7, 8 {1 number of values, ...}
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

SIZE, STORED_SIZE, CHECKSUM = 2, 3, 4  # fields of a header
DATA, DICTIONARY, DATA_V2 = 5, 7, 8  # structs that begin with the number of values
VALUED = frozenset((DATA, DICTIONARY, DATA_V2))
VALUES = 1
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
INTEGERS = frozenset((I16, I32, I64))
WIDTHS = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}  # bytes of a value; a truth is in the kind itself
NESTING = 16
HEADER, LARGEST_HEADER = 200, 2**24  # bytes: nearly all are within the first
VALUE_BYTES = 16  # of a value in memory, with its levels; texts and dictionaries are in the sizes
Fields = dict[int, Any]


class Page(NamedTuple):
    """A page: its size once decompressed, its number of values, where it is, and its checksum."""

    size: int
    values: int
    start: int
    end: int
    checksum: int | None


class DamagedPageError(ValueError):
    """The bytes where a page should be are none."""


class Frame(NamedTuple):
    """What a file has around the content of its pages.

    memory   the most bytes that its columns can take when they are decoded
    sha256   of all that is not content of a page. The checksums of the pages are in it, so that it
             stands for the whole file where these are verified too
    """

    memory: int
    sha256: str


def frame_of(path: Path, metadata: pq.FileMetaData, checksums: bool = False) -> Frame:
    """The frame of a file. With `checksums`, the content of pages is checked."""
    with path.open("rb", buffering=0) as file:
        return frame_in(_Content(file), metadata, checksums)


def frame_in(content: Any, metadata: pq.FileMetaData, checksums: bool = False) -> Frame:
    """The frame of a file with these bytes."""
    memory, place, digest = 0, 0, hashlib.sha256()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(metadata.num_columns):
            chunk = row_group.column(number)
            for page in pages_of(content, chunk):
                memory += page.size + page.values * VALUE_BYTES
                if checksums and page.checksum is not None:
                    _check(content, page, chunk.path_in_schema)
                digest.update(content[place : page.start])
                place = page.end
    digest.update(content[place:])
    return Frame(memory, digest.hexdigest())


class _Content:
    """The bytes of a file that are read where somebody asks for them."""

    def __init__(self, file: io.FileIO) -> None:
        self._file, self._size = file, os.fstat(file.fileno()).st_size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        self._file.seek(start)
        return self._file.read(max(stop - start, 0))


def pages_of(content: Any, chunk: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """The pages of a column chunk, as a decoder meets them."""
    place = chunk.data_page_offset
    no_data = chunk.num_values == place == 0  # a table without rows has dictionaries alone
    if chunk.has_dictionary_page and (no_data or 0 < chunk.dictionary_page_offset < place):
        place = chunk.dictionary_page_offset
    end = place + chunk.total_compressed_size
    if not 0 <= place <= end <= len(content):
        raise DamagedPageError(f"column {chunk.path_in_schema!r} would lie outside of the file")
    while place < end:
        page = _page(content, place)
        if page.end > end:
            raise DamagedPageError(f"a page of column {chunk.path_in_schema!r} is cut off")
        yield page
        place = page.end


def _check(content: Any, page: Page, column: str) -> None:
    if zlib.crc32(content[page.start : page.end]) != page.checksum:
        raise DamagedPageError(f"a page of column {column!r} does not have its checksum")


def _page(content: Any, place: int) -> Page:
    fields, start = _header(content, place)
    try:
        counts = [fields[kind][VALUES] for kind in VALUED & fields.keys()]
        size, stored, checksum = fields[SIZE], fields[STORED_SIZE], fields.get(CHECKSUM)
        if min(size, stored, *counts) < 0:
            raise DamagedPageError("a page has a negative size")
        end = start + stored
        return Page(size, sum(counts), start, end, None if checksum is None else checksum % 2**32)
    except (KeyError, TypeError):
        raise DamagedPageError("a page has no size") from None


def _header(content: Any, place: int) -> tuple[Fields, int]:
    """The fields of a header, and where it ends."""
    for length in (HEADER, LARGEST_HEADER):
        try:
            fields, end = _struct(content[place : place + length])
        except IndexError:
            continue
        return fields, place + end
    raise DamagedPageError("the header of a page is cut off")


def _struct(content: bytes) -> tuple[Fields, int]:
    """The fields by number of a struct that begins here, and where it ends.

    Only numbers and structs are kept. Every page of a log passes here when it is opened, so this is
    one loop without calls.
    """
    fields: Fields = {}
    outer: list[tuple[Fields, int]] = []  # the structs around the present one, and its number there
    place = number = 0
    while True:
        head = content[place]
        place += 1
        if not head:
            if not outer:
                return fields, place
            fields, number = outer.pop()
            continue
        kind = head & 15
        if head > 15:
            number += head >> 4
        else:
            raw, place = _varint(content, place)
            number = (raw >> 1) ^ -(raw & 1)
        if kind in INTEGERS:
            raw = content[place]
            place += 1
            if raw > 127:
                raw, place = _varint(content, place - 1)
            fields[number] = (raw >> 1) ^ -(raw & 1)
        elif kind == STRUCT:
            if len(outer) >= NESTING:
                raise DamagedPageError("a header is nested too deeply")
            outer.append((fields, number))
            inner: Fields = {}
            fields[number] = inner
            fields, number = inner, 0
        elif kind == BINARY:
            length, place = _varint(content, place)
            place += length
        elif kind in WIDTHS:
            place += WIDTHS[kind]
        else:
            raise DamagedPageError(f"the header of a page has a field of kind {kind}")


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise DamagedPageError("a number in the header of a page has no end")
