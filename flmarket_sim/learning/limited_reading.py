"""Reads what is packed up to a known size: a few bytes can stand for more than a memory holds."""

from __future__ import annotations

import hashlib
import zipfile
from typing import IO, Protocol

from flmarket_sim.errors import DataError

CHUNK = 2**20
SPARE = 2**20  # bytes that an archive may have beyond the files in it


class Readable(Protocol):
    """A file, an answer of a server, or the member of an archive."""

    def read(self, size: int, /) -> bytes: ...


def read_limited(stream: Readable, most: int, what: str) -> tuple[bytes, str]:
    """Everything in a stream and its SHA-256; refused as soon as it is more than `most` bytes.

    `what` begins the message.
    """
    content, digest = bytearray(), hashlib.sha256()
    while chunk := stream.read(min(CHUNK, most + 1 - len(content))):
        content += chunk
        digest.update(chunk)
        if len(content) > most:
            raise DataError(f"{what} holds more than the {most:,} bytes that it may have")
    return bytes(content), digest.hexdigest()


def zip_member(archive: IO[bytes], member: str, most: int, what: str) -> bytes:
    """One member of a zip archive, of at most `most` bytes."""
    with zipfile.ZipFile(archive) as packed, packed.open(member) as unpacked:
        return read_limited(unpacked, most, f"{what}: {member}")[0]
