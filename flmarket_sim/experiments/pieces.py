"""Long studies in pieces: each piece is done once, in a process of its own, and kept; a study that was stopped goes on.

A study in pieces says which pieces it needs and what they add up to. A piece is plain data, and everything that its result depends on is
in it or in the scenario, so that two studies which need the same piece share it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from flmarket_sim.errors import FlmarketError
from flmarket_sim.experiments.worker_processes import Died, in_processes
from flmarket_sim.market.run_folder import versions
from flmarket_sim.plugins import registry
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import disk_error, write_text
from flmarket_sim.storage.result_folders import alone
from flmarket_sim.studies.study import Finding, Progress

Row = dict[str, Any]
What = dict[str, Any]


class Pieced(Protocol):
    """A study that can be done in pieces."""

    name: str

    def pieces(self, scenario: Scenario) -> list[What]: ...
    def piece(self, scenario: Scenario, what: What) -> list[Row]: ...
    def finding(self, scenario: Scenario, results: list[list[Row]]) -> Finding: ...


@dataclass(frozen=True)
class Piece:
    """One piece for a process: the scenario names the study and its options, `what` says which piece of it."""

    scenario: Scenario
    what: str  # JSON

    @property
    def key(self) -> str:
        """Of the piece alone: options of the study that it does not depend on are not in it. The version of the package is."""
        assert self.scenario.study is not None
        market = self.scenario.model_copy(update={"study": None, "name": "", "description": ""})
        text = (
            f"{versions()['flmarket-sim']} {market.digest()} {self.scenario.study.name} {self.what}"
        )
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Failed:
    """In the place of rows: what went wrong, in words for people."""

    message: str


def asked(scenario: Scenario) -> Any:
    """The study that a scenario names."""
    assert scenario.study is not None
    return registry.studies.create(scenario.study.name, **scenario.study.options)


def here(study: Pieced, scenario: Scenario, progress: Progress) -> Finding:
    """The whole study in this process, nothing kept."""
    needed = study.pieces(scenario)
    results = []
    for done, what in enumerate(needed, 1):
        results.append(study.piece(scenario, what))
        progress(done, len(needed))
    return study.finding(scenario, results)


def in_pieces(scenario: Scenario, kept: Path, workers: int, progress: Progress) -> Finding:
    """The study of a scenario, its pieces in processes and kept in the folder `kept`; those that are there are not done again."""
    study = asked(scenario)
    pieces = [Piece(scenario, json.dumps(what, sort_keys=True)) for what in study.pieces(scenario)]
    kept.mkdir(parents=True, exist_ok=True)
    with alone(
        kept / ".lock",
        f"another process keeps its pieces in {kept}; wait for it, or name another directory with --out",
    ):
        return study.finding(scenario, _all_of(pieces, scenario.name, kept, workers, progress))  # type: ignore[no-any-return]


def _all_of(
    pieces: list[Piece], name: str, kept: Path, workers: int, progress: Progress
) -> list[list[Row]]:
    """The rows of each piece, in order."""
    results = {piece.key: _known(kept, piece.key) for piece in pieces}
    waiting = list({piece.key: piece for piece in pieces if results[piece.key] is None}.values())
    total, done = len(results), len(results) - len(waiting)
    progress(done, total)
    with closing(in_processes(perform, waiting, workers)) as finished:
        for piece, rows in finished:
            if isinstance(rows, Died | Failed):
                raise FlmarketError(f"{name}, piece {piece.what}: {getattr(rows, 'message', rows)}")
            _keep(kept, piece.key, rows)
            results[piece.key] = rows
            done += 1
            progress(done, total)
    return [known for piece in pieces if (known := results[piece.key]) is not None]


def perform(piece: Piece) -> list[Row] | Failed:
    """One piece, in this process."""
    from flmarket_sim.threads import one_torch_thread

    try:
        with one_torch_thread():
            rows: list[Row] = asked(piece.scenario).piece(piece.scenario, json.loads(piece.what))
        return rows
    except FlmarketError as error:
        return Failed(str(error))
    except Exception as error:  # a plug-in, or ours: the user must learn which piece and why
        return Failed(f"{type(error).__name__}: {error}")


def _known(folder: Path, key: str) -> list[Row] | None:
    path = folder / f"{key}.json"
    try:
        rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None  # torn or not ours: done again and replaced
    return rows


def _keep(folder: Path, key: str, rows: Sequence[Row]) -> None:
    try:
        write_text(folder / f"{key}.json", json.dumps(rows))
    except OSError as error:
        raise disk_error(
            folder, error, "What is done is kept; free some space and run the same again"
        ) from error
