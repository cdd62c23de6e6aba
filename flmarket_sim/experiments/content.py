"""Hashes of arrays and profiles, for keys; market/named_files.py has those of files."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from numpy.typing import NDArray

from flmarket_sim.market.named_files import file_contents
from flmarket_sim.owners.bids import Profiles
from flmarket_sim.owners.family_table import named_codes


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
