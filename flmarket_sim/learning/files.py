"""Where data sets live on disk: finding, checking, fetching, and a cache of the features made from them."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import io
import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flmarket_sim.errors import DataError, InputError
from flmarket_sim.learning.dataset import Dataset


@dataclass(frozen=True)
class DataFile:
    """One file of a data set: its name, the SHA-256 of its text, and where it can be had."""

    name: str
    sha256: str
    url: str
    member: tuple[str, ...] = ()  # path through nested zip archives


def cache_home() -> Path:
    """`$FLMARKET_CACHE`, or the user's cache folder."""
    if own := os.environ.get("FLMARKET_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flmarket_sim"


def search_folders() -> list[Path]:
    """Folders that are searched, in order: `$FLMARKET_DATA`, the user's cache, `shared/data` beside the checkout."""
    folders = [cache_home() / "data", Path(__file__).resolve().parents[3] / "shared" / "data"]
    if own := os.environ.get("FLMARKET_DATA"):
        folders.insert(0, Path(own))
    return folders


def find(folder: str, file: DataFile) -> Path | None:
    """The first existing copy, plain or gzipped, directly in a search folder or in `folder` below it."""
    for root in search_folders():
        for path in (root / folder / file.name, root / file.name):
            for candidate in (path, path.with_name(path.name + ".gz")):
                if candidate.is_file():
                    return candidate
    return None


def require(dataset: str, folder: str, file: DataFile) -> Path:
    path = find(folder, file)
    if path is None:
        looked = ", ".join(str(root / folder) for root in search_folders())
        raise DataError(
            f"data set {dataset!r}: {file.name} was not found in {looked}. Run 'flmarket data fetch {dataset}', or put the "
            f"file (plain or .gz) into a folder and name it in FLMARKET_DATA"
        )
    return path


def read(path: Path, file: DataFile) -> bytes:
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


def cached(name: str, version: int, sources: list[Path], make: Callable[[], Dataset]) -> Dataset:
    """The data set from the feature cache, made and stored first if the sources changed.

    The key is what the file system says of the sources (path, size, time), so a hit reads no source at all. Without a
    place to write, the features are simply made each time.
    """
    facts = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in sources]
    key = hashlib.sha256(repr((version, facts)).encode()).hexdigest()[:16]
    home = cache_home() / "features" / f"{name}-{key}"
    parts = ("train_x", "train_y", "test_x", "test_y", "classes")
    try:
        loaded = [np.load(home / f"{part}.npy") for part in parts]
        return Dataset(loaded[0], loaded[1], loaded[2], loaded[3], tuple(loaded[4].tolist()))
    except (OSError, ValueError, EOFError):
        pass
    data = make()
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=home.parent, prefix=".new-"))
        try:
            for part in parts:
                np.save(fresh / f"{part}.npy", np.asarray(getattr(data, part)))
            if home.exists():
                shutil.rmtree(home)
            fresh.rename(home)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError:
        pass
    return data


def fetch(dataset: str, folder: str, file: DataFile, base: str | None = None) -> Path:
    """Downloads a file into the user's cache and checks it. `base` replaces the address up to the last slash."""
    existing = find(folder, file)
    if existing is not None:
        read(existing, file)
        return existing
    url = file.url if base is None else base.rstrip("/") + "/" + file.url.rsplit("/", 1)[1]
    if not url.startswith(("https://", "http://")):
        raise InputError(f"only http and https addresses can be fetched, got {url}")
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
        for member in file.member:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(member)
    except (OSError, ValueError, http.client.HTTPException, zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"data set {dataset!r}: {url} could not be fetched: {error}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.sha256:
        raise DataError(
            f"{url} gave a file with SHA-256 {digest}, expected {file.sha256}; nothing was kept"
        )
    target = cache_home() / "data" / folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    fresh.write_bytes(content)
    fresh.replace(target)
    return target
