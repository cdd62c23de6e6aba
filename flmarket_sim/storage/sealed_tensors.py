"""A safetensors file with a hash of its own content: facts, names, types, shapes and values.

The facts are one JSON text in the file's metadata, and the hash is among them. (A second entry of
the metadata would not do: safetensors writes entries in any order, and the same content has to give
the same bytes.)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

KEY = "flmarket"  # of the metadata
HASH = "sha256"  # among the facts


def sealed_metadata(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a file with these facts and arrays (NumPy's)."""
    rest = {key: value for key, value in facts.items() if key != HASH}
    return {KEY: json.dumps(rest | {HASH: _digest(rest, arrays)}, sort_keys=True)}


def checked_facts(metadata: Mapping[str, str], arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a file, without the hash. ValueError if that is not the hash of the content.

    Files of earlier versions have none.
    """
    facts = json.loads(metadata[KEY])
    if not isinstance(facts, dict):
        raise ValueError("its facts are not an object")
    digest = facts.pop(HASH, None)
    if digest is not None and digest != _digest(facts, arrays):
        raise ValueError("it is damaged: its content does not have the hash that it names")
    return facts


def metadata_of(content: bytes) -> dict[str, str]:
    """The metadata of a file that safetensors can read."""
    head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(head.get("__metadata__") or {})


def _digest(facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
