"""A cache of the features that are made from the files of a data set.

A folder of the cache holds an array for each part of the data set, and `content.json` with the
SHA-256 of each of them and of the sources that they were made from. Arrays are checked when they
are read: features that somebody has edited, or a disk has damaged, are made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from flmarket_sim.errors import FlmarketWarning, InputError
from flmarket_sim.learning.dataset import Dataset
from flmarket_sim.storage.untrusted_files import read_json

PARTS = ("train_x", "train_y", "test_x", "test_y", "classes")
OF_OWNERS = ("owners", "owner_names")  # where the data name the owners
TUPLES = ("classes", "owner_names")
CONTENT = "content.json"


class CacheContent(pydantic.BaseModel, extra="forbid"):
    """What `content.json` says: the SHA-256 of each part, and of each source by its path."""

    parts: dict[str, str]
    sources: dict[str, str]


class ChangedCache(Exception):
    """A cache that does not hold what was written into it; the message says what is wrong."""


def cache_home() -> Path:
    """`$FLMARKET_CACHE`, or the user's cache folder."""
    if own := os.environ.get("FLMARKET_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flmarket_sim"


def cached(name: str, version: int, sources: list[Path], make: Callable[[], Dataset]) -> Dataset:
    """The data set from the cache; `make` is called only if the sources have changed.

    The key consists of path, size and time of the sources, so a hit reads none of them. A cache
    that was changed is made anew, with a warning. Where the cache cannot be written, the features
    are made each time.
    """
    facts = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in sources]
    key = hashlib.sha256(repr((version, facts)).encode()).hexdigest()[:16]
    home = cache_home() / "features" / f"{name}-{key}"
    if (home / CONTENT).exists():  # caches of earlier versions have none
        try:
            return _read(home)
        except ChangedCache as error:
            warnings.warn(
                f"{error}; the features of {name!r} are made anew from their files",
                FlmarketWarning,
                stacklevel=2,
            )
    data = make()
    _write(home, data, sources)
    return data


def changed_caches(names: Sequence[str] = ()) -> list[str]:
    """What is wrong with the caches of these data sets, a sentence for each; by default of all."""
    wrong = []
    for content in sorted((cache_home() / "features").glob(f"*/{CONTENT}")):
        name = content.parent.name
        if not names or any(name.startswith(f"{wanted}-") for wanted in names):
            try:
                _check(content.parent)
            except ChangedCache as error:
                wrong.append(f"{error}; they are made anew when the data set is used")
    return wrong


def _read(home: Path) -> Dataset:
    """The data set in a folder; raises ChangedCache if it is not what was written."""
    try:
        loaded: dict[str, Any] = {
            part: np.load(home / f"{part}.npy") for part in _check(home).parts
        }
        loaded |= {part: tuple(loaded[part].tolist()) for part in TUPLES if part in loaded}
        return Dataset(**loaded)
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise ChangedCache(f"{home}: the features there cannot be read ({error})") from None


def _check(home: Path) -> CacheContent:
    """The content of a folder, if every part has the SHA-256 that was written down."""
    try:
        content = CacheContent.model_validate(read_json(home / CONTENT))
        if set(content.parts) not in (set(PARTS), {*PARTS, *OF_OWNERS}):
            raise ValueError("other parts than those of a data set")
        for part, sha256 in content.parts.items():
            if _sha256(home / f"{part}.npy") != sha256:
                raise ChangedCache(f"{home}: the features there were changed ({part}.npy)")
    except (OSError, ValueError, InputError):
        raise ChangedCache(f"{home}: the features there are damaged ({CONTENT})") from None
    return content


def _write(home: Path, data: Dataset, sources: list[Path]) -> None:
    parts = PARTS if data.owners is None else PARTS + OF_OWNERS
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=home.parent, prefix=".new-"))
        try:
            for part in parts:
                np.save(fresh / f"{part}.npy", np.asarray(getattr(data, part)))
            content = CacheContent(
                parts={part: _sha256(fresh / f"{part}.npy") for part in parts},
                sources={str(source): _sha256(source) for source in sources},
            )
            text = json.dumps(content.model_dump(), indent=2) + "\n"
            (fresh / CONTENT).write_text(text, encoding="utf-8")
            if home.exists():
                shutil.rmtree(home)
            fresh.rename(home)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError:
        pass


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
