"""Files that cannot change unnoticed: JSON with a hash of its own content, and hashes of files.

A hash here is a SHA-256. It finds damage and mix-ups; somebody who changes a file and its hash
together is not found.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.untrusted_files import read_json

SEAL = "content_sha256"  # the last key of a sealed JSON file
HASH_LIST = "files.json"  # hashes of the other files of a folder
BLOCK = 2**20
SETTLED = 2.0  # seconds after which a change of a file shows in its time stamps on any system
MOST_KNOWN = 2**14  # hashes that a process remembers; a server may live for months
_known: dict[tuple[Any, ...], str] = {}  # hashes of files that this process has read


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The same entries, and last a hash of them all."""
    rest = {key: value for key, value in content.items() if key != SEAL}
    return rest | {SEAL: _digest(rest)}


def check_seal(path: Path, content: Mapping[str, Any], advice: str, needed: bool = False) -> None:
    """Refuses the content of a JSON file that is not what its seal says.

    Earlier versions wrote no seals: `needed` says that this file must have one.
    """
    if SEAL not in content:
        if needed:
            raise InputError(f"{path} is damaged: it has no {SEAL!r}. {advice}")
        return
    if content[SEAL] != _digest({key: value for key, value in content.items() if key != SEAL}):
        raise InputError(
            f"{path} is damaged: its content does not have the hash that it names as {SEAL!r}. "
            f"{advice}"
        )


def read_sealed(path: Path, advice: str, needed: bool = False) -> dict[str, Any]:
    """The content of a JSON file that may have a seal, or must have one if it is `needed`.

    A missing file is FileNotFoundError.
    """
    content = read_json(path)
    check_seal(path, content, advice, needed)
    return content


def write_hash_list(folder: Path, hashes: Mapping[str, str], of: str) -> None:
    """Keeps the hashes of files of a folder, by their names in it; `of` says whose they are."""
    content = sealed({"of": of, "files": dict(sorted(hashes.items()))})
    write_text(folder / HASH_LIST, json.dumps(content, indent=1) + "\n")


def read_hash_list(folder: Path, advice: str, of: str = "") -> dict[str, str] | None:
    """The hashes of files of a folder; None if it has no list of them.

    `of` is what the folder says it holds, if it says so: the list of something else is refused.
    """
    path = folder / HASH_LIST
    try:
        content = read_json(path)
    except FileNotFoundError:
        return None
    check_seal(path, content, advice, needed=True)
    if of and content.get("of", of) not in ("", of):
        raise InputError(f"{path} and what is beside it are not of one result. {advice}")
    try:
        return {str(name): str(digest) for name, digest in content["files"].items()}
    except (KeyError, AttributeError):
        raise InputError(f"{path} is damaged: it does not name hashes. {advice}") from None


def file_hash(path: Path) -> str:
    """The SHA-256 of a file.

    This process remembers it for as long as size and times of the file stay, unless the file has
    changed in the last moments: another change might then have the same times.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
        stamp = (str(path.absolute()), stat.st_ino, stat.st_size, stat.st_mtime_ns, changed)
        if (known := _known.get(stamp)) is not None:
            return known
        digest = hashlib.sha256()
        while block := file.read(BLOCK):
            digest.update(block)
    if time.time() - changed / 1e9 > SETTLED:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[stamp] = digest.hexdigest()
    return digest.hexdigest()


def check_file(path: Path, wanted: str, named_in: str, advice: str) -> None:
    """Refuses a file that is lost, or does not have the hash that another file has of it."""
    try:
        actual = file_hash(path)
    except FileNotFoundError:
        raise InputError(
            f"{path} is lost: {named_in} names it, and it is not there. {advice}"
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}. {advice}") from None
    if actual != wanted:
        raise InputError(
            f"{path} is damaged: it does not have the hash that {named_in} has of it. {advice}"
        )


def _digest(content: Mapping[str, Any]) -> str:
    """A hash of values: spaces and the order of keys do not count."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
