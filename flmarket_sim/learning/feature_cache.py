"""A cache of the features that are made from the files of a data set."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from flmarket_sim.learning.dataset import Dataset


def cache_home() -> Path:
    """`$FLMARKET_CACHE`, or the user's cache folder."""
    if own := os.environ.get("FLMARKET_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "flmarket_sim"


def cached(name: str, version: int, sources: list[Path], make: Callable[[], Dataset]) -> Dataset:
    """The data set from the cache; `make` is called only if the sources have changed.

    The key consists of path, size and time of the sources, so a hit reads none of them. Where the
    cache cannot be written, the features are made each time.
    """
    facts = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in sources]
    key = hashlib.sha256(repr((version, facts)).encode()).hexdigest()[:16]
    home = cache_home() / "features" / f"{name}-{key}"
    parts = ["train_x", "train_y", "test_x", "test_y", "classes"]
    with_owners = ("owners", "owner_names")
    try:
        loaded = [np.load(home / f"{part}.npy") for part in parts]
        loaded[4] = tuple(loaded[4].tolist())
        if (home / "owners.npy").exists():
            loaded += [np.load(home / f"{part}.npy") for part in with_owners]
            loaded[6] = tuple(loaded[6].tolist())
        return Dataset(*loaded)
    except (OSError, ValueError, EOFError):
        pass
    data = make()
    if data.owners is not None:
        parts += with_owners
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
