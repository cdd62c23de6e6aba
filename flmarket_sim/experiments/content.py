"""Hashes of content, for keys: weights and plug-ins count by what their files hold, not by name."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import named_codes

PLUGIN = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_]\w*")  # module:Class


def file_contents(data: Any) -> dict[str, str]:
    """A hash of each file that a text inside `data` names.

    A text names a file as a path, as NAME@PATH (an auction with its weights), or as module:Class.
    """
    hashes = {}
    for text in sorted(set(_texts(data))):
        path = _file_of(text)
        if path is not None:
            hashes[text] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def array_contents(*arrays: NDArray[Any]) -> str:
    """A hash of the types, shapes and values of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes())
    return digest.hexdigest()


def profile_contents(truth: Profiles) -> str:
    """A hash of profiles: families count by name, and plug-ins by what their files hold."""
    names, positions = named_codes(truth.family)
    arrays = array_contents(positions, truth.rate, truth.privacy_budget, truth.data_size)
    return json.dumps([names, file_contents(names), arrays])


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


def _file_of(text: str) -> Path | None:
    if match := PLUGIN.fullmatch(text):
        return _source_of(match[1])
    try:
        path = Path(AuctionName.parse(text).weights or text)
        return path if path.is_file() else None
    except (OSError, ValueError):  # a text that cannot be a path
        return None


def _source_of(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    return Path(spec.origin)
