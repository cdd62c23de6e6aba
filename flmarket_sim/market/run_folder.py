"""The directory of a run: its lock, run.json, and the tables of owners and ledger."""

from __future__ import annotations

import filecmp
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from filelock import BaseFileLock

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.eventlog import ParquetLog, read_run
from flmarket_sim.eventlog.model_files import read_models
from flmarket_sim.eventlog.reader import check_parts, event_files, read_scenario
from flmarket_sim.eventlog.run_files import check_files
from flmarket_sim.eventlog.schema import KINDS, SCHEMA_VERSION
from flmarket_sim.learning.dataset import OwnFiles, data_source
from flmarket_sim.market import checkpoint
from flmarket_sim.market.behaviour_cast import HONEST, Cast
from flmarket_sim.market.cheat_cast import CheatCast
from flmarket_sim.market.ledger import Ledger
from flmarket_sim.market.model_keeper import ModelKeeper
from flmarket_sim.market.provenance import (
    MIXED,
    PROVENANCE,
    continued,
    provenance,
    same_versions,
    version_of,
    versions,
)
from flmarket_sim.market.replaced_run import REAL_CLIENT_FILES, is_unfinished, make_room
from flmarket_sim.owners.family_table import FAMILIES, family_names, positions_among, present
from flmarket_sim.owners.population import Population
from flmarket_sim.plugins.plugin_files import file_plugins, find_again
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import DiskError, disk_error, write_parquet, write_text
from flmarket_sim.storage.result_folders import LOCK, claim, lock, remove_lock_file
from flmarket_sim.storage.sealed_files import HASH_LIST, sealed

DATA_FILES = "data_files"  # the key of run.json
Casts = tuple[Cast | None, CheatCast | None]
REAL_CLIENTS = "real_clients"  # the key of run.json of a run that no simulation has made
TABLE_FILES = ("owners.parquet", "ledger.parquet")


class Findings(NamedTuple):
    """What a finished run says about itself in run.json.

    notes       sentences about the market that its users should read
    warnings    why some of its numbers mean little
    yardsticks  by buyer, what her accuracy is to be compared with
    """

    notes: list[str]
    warnings: list[str]
    yardsticks: Mapping[str, Mapping[str, float | None]]

    def as_dict(self) -> dict[str, Any]:
        """The entries of run.json; those without content are left out."""
        known = {
            name: dict(own)
            for name, own in self.yardsticks.items()
            if any(number is not None for number in own.values())
        }
        entries = {"notes": self.notes, "warnings": self.warnings, "yardsticks": known}
        return {key: entry for key, entry in entries.items() if entry}


class RunFolder:
    """The directory of one run, open for writing by this process alone."""

    def __init__(
        self, path: Path, held: BaseFileLock | None, info: dict[str, Any], before: float = 0.0
    ) -> None:
        self.path, self.info = path, info
        self._lock, self._before, self._began = held, before, time.perf_counter()

    @classmethod
    def create(
        cls,
        path: Path,
        scenario: Scenario,
        force: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> RunFolder:
        """Makes a new or empty directory the directory of a run.

        `more` are further entries of run.json. With `force`, the directory may hold a run that
        failed or was stopped: it is deleted.
        """
        if force:
            make_room(path)
        elif is_unfinished(path):
            raise InputError(
                f"{path} is not empty: it holds a run that is not finished. If no process is at "
                "work on it, `resume` continues it, and `force=True` replaces it; `out` names "
                "another directory"
            )
        claim(path, "run")
        held = lock(path, "run")
        try:
            info = {
                "schema": SCHEMA_VERSION,
                "scenario": scenario.as_dict(),
                "scenario_sha256": scenario.digest(),
                "seed": scenario.seed,
                "repeatable": scenario.repeatable,
                **data_files(scenario),
                PROVENANCE: provenance(scenario),
                "versions": versions()
                | ({} if scenario.repeatable else {"opendp": version_of("opendp")}),
            }
            info |= dict(more or {})
            if plugins := file_plugins(scenario.as_dict()):
                info["plugins"] = plugins
            _write_json(path / "run.json", info | {"outcome": "running"})
            return cls(path, held, info)
        except OSError as error:
            held.release()
            raise disk_error(path, error, "Nothing was begun") from error
        except BaseException:
            held.release()
            raise

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """The directory of a run; refuses all others."""
        if not path.is_dir():
            raise InputError(f"{path} is not a directory; resume takes the directory of a run")
        if (path / "sweep.json").exists():
            raise InputError(
                f"{path} is the directory of a sweep; `flmarket sweep` with its file continues it"
            )
        info = read_run(path)
        held = None if info.get("outcome") == "finished" else lock(path, "run")
        try:
            info = read_run(path)  # it may have changed before we had the lock
            if not {"scenario", "scenario_sha256", "versions", "outcome"} <= info.keys():
                raise InputError(
                    f"{path / 'run.json'} does not describe a run; start again with `flmarket run`"
                )
            stable = {
                key: info[key]
                for key in (
                    "schema",
                    "scenario",
                    "scenario_sha256",
                    "seed",
                    "repeatable",
                    DATA_FILES,
                    PROVENANCE,
                    MIXED,
                    "versions",
                    "plugins",
                    REAL_CLIENTS,
                )
                if key in info
            }
            if info["outcome"] == "finished" and held is not None:
                held.release()
                held = None
            return cls(path, held, stable | {"outcome": info["outcome"]}, _seconds(info))
        except BaseException:
            if held is not None:
                held.release()
            raise

    @property
    def finished(self) -> bool:
        return self.info.get("outcome") == "finished"

    def scenario(self, mixed: bool = False) -> Scenario:
        """The scenario of the run. Refuses other versions and plug-ins, unless it may be mixed."""
        if REAL_CLIENTS in self.info:
            raise InputError(
                f"{self.path} is a run of real clients, which no simulation can continue; start "
                "its server again (docs/flower.md)"
            )
        if self.info.get("repeatable") is False:
            raise InputError(
                f"{self.path} has noise that cannot be drawn again, so its run cannot be resumed; "
                "start it again in another directory"
            )
        if not mixed:
            same_versions(self.path, self.path / "run.json", self.info["versions"])
        lost = find_again(self.info.get("plugins"))
        if lost and not mixed:
            raise InputError(
                f"{self.path} was begun with {', '.join(lost)}. This file is gone or was changed, "
                "and the rest of the run could differ; put it back to continue, or start again: "
                "`force=True` replaces the run"
            )
        return read_scenario(self.path)

    def go_on(self, scenario: Scenario, start: checkpoint.Checkpoint | None, mixed: bool) -> None:
        """Refuses what provenance.py refuses; a mixed run is marked in run.json."""
        stored = {} if start is None else start.facts.provenance
        self.info |= continued(self.path, self.info, scenario, stored, mixed)

    def check_data_files(self, scenario: Scenario) -> None:
        """Refuses to continue a run whose own data files have changed since it began."""
        then, now = self.info.get(DATA_FILES, {}), data_files(scenario).get(DATA_FILES, {})
        for path in now:
            if now[path] != (then.get(path) if isinstance(then, dict) else None):
                raise InputError(
                    f"{path} has changed since {self.path} began, and the rest would differ; "
                    "bring the file back, or start again in another directory"
                )

    def write_owners(self, people: Population, casts: Casts, records: bool = True) -> None:
        """Writes the owners, with their records if these are wanted and known.

        Refuses to continue a run with other owners.
        """
        table = owners_table(people, casts, records)
        path, again = self.path / "owners.parquet", self.path / ".owners.parquet.again"
        if not path.exists():
            write_parquet(path, table)
            return
        write_parquet(again, table)
        same = filecmp.cmp(path, again, shallow=False)
        again.unlink()
        if not same:
            raise FlmarketError(
                f"the owners are not those of {path}: it is damaged, or the data set or the kind "
                "of CPU has changed since the run began. If it is damaged, delete it and "
                "resume again"
            )

    def finish(
        self, ledger: Ledger, log: ParquetLog, models: ModelKeeper, findings: Findings
    ) -> dict[str, Any]:
        """Completes the run: afterwards its directory has results only."""
        write_parquet(self.path / "ledger.parquet", ledger_table(ledger))
        log.close()
        log.files.add(self.path / "ledger.parquet")
        self.info |= {"outcome": "finished", "log": log.summary()} | _kept(models)
        self.info |= findings.as_dict() | log.files.entries()
        self.info["wall_seconds"] = self._seconds()
        _write_json(self.path / "run.json", self.info)
        self.tidy()
        return self.info

    def tidy(self) -> None:
        """Deletes files that only a running simulation needs, or that a kill has left."""
        gone = [self.path / name for name in (checkpoint.NAME, HASH_LIST, *REAL_CLIENT_FILES)]
        for path in (*gone, *self.path.glob("events/journal-*")):
            path.unlink(missing_ok=True)
        for pattern in (
            ".*.tmp",
            ".*.again",
            "events/.*.tmp",
            "events/*/.*.tmp",
            "models/*/.*.tmp",
        ):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        remove_lock_file(self.path / LOCK)  # last: from now on others may write here

    def check_whole(self) -> None:
        """Refuses a finished run that has lost files, or has other files than it wrote."""
        info = read_run(self.path)
        for kind, (parts, later) in event_files(self.path, list(KINDS)).items():
            check_files(self.path, info, parts)
            check_parts(self.path, info, kind, parts, later)
        check_files(self.path, info, [self.path / name for name in TABLE_FILES])
        for name in TABLE_FILES:
            if not (self.path / name).exists():
                raise InputError(
                    f"{self.path} is finished, but {name} is lost; run the scenario again: the "
                    "same seed gives the same bytes"
                )
        if "models" in info:
            for _ in read_models(self.path):
                pass

    def stop(self, log: ParquetLog, error: BaseException, models: ModelKeeper) -> None:
        """Ends the run early. After a failure it also stores the events that led to the failure.

        The disk may be full, so errors here must not hide the error that stopped the run.
        """
        interrupted = isinstance(error, KeyboardInterrupt)
        try:
            if not interrupted and not isinstance(error, OSError | DiskError):
                log.note()
        except (OSError, FlmarketError):
            pass
        log.journal.close()
        outcome = "interrupted" if interrupted else "failed"
        ending = {
            "outcome": outcome,
            "error": f"{type(error).__name__}: {error}",
            "log": {"events": log.safe},
        } | _kept(models)
        try:
            _write_json(
                self.path / "run.json", self.info | ending | {"wall_seconds": self._seconds()}
            )
        except OSError:
            pass

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _seconds(self) -> float:
        return round(self._before + time.perf_counter() - self._began, 3)


def data_files(scenario: Scenario) -> dict[str, dict[str, str]]:
    """The entry of run.json about the user's own data files, if there are any."""
    source = data_source(scenario)
    return {DATA_FILES: source.file_hashes()} if isinstance(source, OwnFiles) else {}


def _seconds(info: dict[str, Any]) -> float:
    seconds = info.get("wall_seconds", 0.0)
    return float(seconds) if isinstance(seconds, float) and math.isfinite(seconds) else 0.0


def _kept(models: ModelKeeper) -> dict[str, Any]:
    """The entry of run.json about kept models, if there are any."""
    return {"models": kept} if (kept := models.summary()) else {}


def owners_table(people: Population, casts: Casts, records: bool = True) -> pa.Table:
    """The true types and behaviours of all owners, and their records in a market with learning."""
    bidding, cheating = casts
    speed = (
        pa.nulls(len(people), pa.float64())
        if people.records_per_second is None
        else people.records_per_second
    )
    named = sorted(family_names(present(people.family)).tolist())
    families = tuple(dict.fromkeys([*FAMILIES, *named]))
    family = positions_among(families, people.family)
    table = pa.table(
        {
            "owner": pa.array(range(len(people)), pa.int32()),
            "family": pa.DictionaryArray.from_arrays(family, list(families)),
            "rate": people.rate,
            "privacy_budget": people.privacy_budget,
            "data_size": people.data_size,
            "records_per_second": speed,
            "behaviour": _roles(bidding, len(people)),
        }
    )
    if cheating is not None:
        table = table.append_column("cheat", _roles(cheating, len(people)))
    if people.names is not None:
        table = table.append_column("name", pa.array(people.names, pa.string()))
    if not records or people.rows is None or people.offsets is None:
        return table
    rows, offsets = (pa.array(column, pa.int32()) for column in (people.rows, people.offsets))
    return table.append_column("records", pa.ListArray.from_arrays(offsets, rows))


def _roles(cast: Cast | CheatCast | None, owners: int) -> pa.DictionaryArray:
    """The behaviour or cheat of each owner by name; null where she has none."""
    if cast is None:
        return pa.DictionaryArray.from_arrays(
            pa.nulls(owners, pa.int8()), pa.array([], pa.string())
        )
    codes = pa.array(cast.code, mask=cast.code == HONEST)
    return pa.DictionaryArray.from_arrays(codes, pa.array(cast.labels, pa.string()))


def ledger_table(ledger: Ledger) -> pa.Table:
    """What every owner sold and earned, and where there are cheats or a check, what she lost."""
    seen = {
        "privacy_lost": ledger.lost,
        "forfeited": ledger.forfeited,
        "true_cost": ledger.cost,
        "judged": ledger.judged,
        "accused": ledger.accused,
    }
    return pa.table(
        {
            "owner": pa.array(range(len(ledger.sold)), pa.int32()),
            "privacy_sold": ledger.sold,
            "gradients": ledger.gradients,
            "earned": ledger.earned,
            "transferred": ledger.transferred,
            "delta_sold": ledger.delta_sold,
            **(seen if ledger.watched else {}),
        }
    )


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(sealed(content), indent=2, ensure_ascii=False) + "\n")
