"""The hashes of the files of a run, and readers' checks against them.

A finished run is what it says: run.json has, under `files`, the SHA-256 of every file but kept
models, which have theirs under `models`. No file is lost, and no other file is taken for one of its
own. While a run is going on, `files.json` has the hashes of what is written so far. Runs of earlier
versions have no hashes of files; only their rows are counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.run_info import AGAIN, FILES, FRAMES, NAME, identity
from flmarket_sim.storage.parquet_pages import frame_of
from flmarket_sim.storage.sealed_files import (
    HASH_LIST,
    check_file,
    file_hash,
    read_hash_list,
    write_hash_list,
)

LEDGER = "ledger.parquet"
RESUME = "If no process is at work on the run, delete this file, and `resume` continues the run"
Hashes = dict[str, str]  # path inside of the run's directory, with slashes -> SHA-256


class RunFiles:
    """The hashes of the files that a run has written. `save` keeps them in `files.json`."""

    def __init__(self, run: Path, of: str = "") -> None:
        self.run, self._of = run, of
        self.hashes = read_hash_list(run, RESUME, of) or {}
        self.frames: Hashes = {}

    def add(self, path: Path, content: Path | None = None) -> None:
        """Notes a file as it is now; `content` is where it is until it gets its name."""
        self.hashes[self._name(path)] = file_hash(content or path)
        self._add_frame(path, content or path)

    def same(self, path: Path) -> bool:
        """Whether a file is what was noted. A file that was not is noted."""
        actual = file_hash(path)
        self._add_frame(path, path)
        return self.hashes.setdefault(self._name(path), actual) == actual

    def save(self) -> None:
        write_hash_list(self.run, self.hashes, self._of)

    def sorted(self) -> Hashes:
        return dict(sorted(self.hashes.items()))

    def _add_frame(self, path: Path, content: Path) -> None:
        if path.parent.name.startswith("kind="):
            self.frames[self._name(path)] = frame_of(content, pq.read_metadata(content)).sha256

    def entries(self) -> dict[str, Hashes]:
        """What run.json has of the files of a finished run."""
        return {FILES: self.sorted(), FRAMES: dict(sorted(self.frames.items()))}

    def _name(self, path: Path) -> str:
        return path.relative_to(self.run).as_posix()


def hashes_of(run: Path, paths: Iterable[Path]) -> Hashes:
    """The hashes of some files of a run."""
    return {path.relative_to(run).as_posix(): file_hash(path) for path in sorted(paths)}


def known_hashes(run: str | os.PathLike[str], info: Mapping[str, Any]) -> Hashes | None:
    """The hashes of a run's files; None if the run has none, as those of earlier versions."""
    return info[FILES] if FILES in info else read_hash_list(Path(run), RESUME, identity(info))


def own_parts(
    run: Path, info: Mapping[str, Any], parts: dict[str, list[Path]], in_journal: set[str]
) -> dict[str, list[Path]]:
    """Of the parts that were found, those that belong to the run; refuses lost and foreign ones.

    While a run is going on, a part that was written this moment is not named yet; its events are
    still in a journal. `in_journal` are the names of parts whose events a journal has.
    """
    hashes = known_hashes(run, info)
    if hashes is None:
        return parts
    own: dict[str, list[Path]] = {}
    for kind, found in parts.items():
        named = {name for name in hashes if name.startswith(f"events/kind={kind}/")}
        there = {part.relative_to(run).as_posix(): part for part in found}
        lost = [name for name in sorted(named - there.keys()) if Path(name).stem not in in_journal]
        if lost:
            _refuse(run / lost[0], "is lost: {} names it, and it is not there", info)
        for name in sorted(there.keys() - named):
            number = there[name].stem.removeprefix("part-")
            if FILES in info or not (run / "events" / f"journal-{number}").exists():
                _refuse(there[name], "is not a file of this run: {} does not name it", info)
        own[kind] = [there[name] for name in sorted(named & there.keys())]
    return own


def check_files(
    run: str | os.PathLike[str], info: Mapping[str, Any], paths: Iterable[Path]
) -> None:
    """Refuses files that are lost, or do not have the hashes that the run has of them."""
    hashes = known_hashes(run, info)
    for path in () if hashes is None else paths:
        assert hashes is not None
        name = path.relative_to(run).as_posix()
        if name in hashes:
            check_file(path, hashes[name], *_words(info))
        elif path.exists() and (FILES in info or name.startswith("events/")):
            _refuse(path, "is not a file of this run: {} does not name it", info)


def check_own(run: Path, info: Mapping[str, Any]) -> None:
    """Refuses a run.json that is not of the files beside it: that of another run is whole, too.

    The ledger decides for a finished run, since it is small and no two runs have the same; the list
    of hashes decides for one that is not finished.
    """
    if FILES not in info:
        known_hashes(run, info)
    elif LEDGER in info[FILES]:
        check_file(run / LEDGER, info[FILES][LEDGER], *_words(info))


def _words(info: Mapping[str, Any]) -> tuple[str, str]:
    """Where the hashes are, and what to do about a file that does not have its hash."""
    return (NAME, AGAIN) if FILES in info else (HASH_LIST, RESUME)


def _refuse(path: Path, what: str, info: Mapping[str, Any]) -> None:
    named_in, advice = _words(info)
    raise InputError(f"{path} {what.format(named_in)}. {advice}")
