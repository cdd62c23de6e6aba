"""Hashes of content, for keys: weights and plug-ins count by what their files hold, not by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from flmarket_sim.auctions.auction_name import AuctionName
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import named_codes
from flmarket_sim.plugins.plugin_files import MODULE_TARGET, content_hash, source_of, texts_in


def file_contents(data: Any) -> dict[str, str]:
    """A hash of each file that a text inside `data` names.

    A text names a file as a path, as module:Class, as path/to/file.py:Class, or as an auction with
    weights or options (auctions/auction_name.py).
    """
    return {
        part: content_hash(path)
        for text in sorted(set(texts_in(data)))
        for part, path in _files_of(text)
    }


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


def _files_of(text: str) -> Iterator[tuple[str, Path]]:
    """The files that a text names, each with the part of the text that names it."""
    name = AuctionName.parse(text)
    for part in dict.fromkeys([text, name.name, name.weights or "", *name.option_texts]):
        path = source_of(part)
        if path is None and not MODULE_TARGET.fullmatch(part):
            try:
                path = Path(part) if Path(part).is_file() else None
            except (OSError, ValueError):  # a text that cannot be a path
                path = None
        if path is not None:
            yield part, path
