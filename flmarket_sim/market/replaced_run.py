"""Making room: a run that failed or was stopped gives its directory to another one.

Only files that a run writes are deleted, and `run.json` is the last of them. So a kill in between
leaves what still is an unfinished run, and the same command continues.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from flmarket_sim.errors import InputError
from flmarket_sim.eventlog.run_info import read_info
from flmarket_sim.eventlog.schema import KINDS
from flmarket_sim.eventlog.view_numbers import KEY_FILE
from flmarket_sim.market import checkpoint
from flmarket_sim.storage.atomic_files import disk_error
from flmarket_sim.storage.result_folders import LOCK, alone

INFO = "run.json"
UNFINISHED = ("running", "interrupted", "failed")
REAL_CLIENT_FILES = ("inbox.log", "clients.json")  # of a running market of real clients
OWN_FILES = re.compile(
    r"(run\.json|files\.json|owners\.parquet|ledger\.parquet"
    rf"|{'|'.join(map(re.escape, REAL_CLIENT_FILES))}"
    rf"|{re.escape(checkpoint.NAME)}|{re.escape(LOCK)}|{re.escape(KEY_FILE)}"
    r"|\.[^/]+\.(tmp|again)|events/(journal-\d+|\.[^/]+\.tmp)"
    rf"|events/kind=({'|'.join(KINDS)})/(part-\d+\.parquet|\.[^/]+\.tmp)"
    r"|models/buyer-\d+/(rounds-\d+\.safetensors|\.[^/]+\.tmp))"
)
OWN_FOLDERS = re.compile(rf"(events(/kind=({'|'.join(KINDS)}))?|models(/buyer-\d+)?)")


def is_unfinished(folder: Path) -> bool:
    """Whether a directory holds a run that failed or was stopped."""
    return _outcome(folder) in UNFINISHED


def make_room(folder: Path) -> None:
    """Deletes the unfinished run in a directory; a directory without files stays as it is.

    Refuses a directory with anything else: a finished run, a run at work, files of other people.
    """
    if not folder.is_dir() or not any(path.name != LOCK for path in folder.iterdir()):
        return
    if (outcome := _outcome(folder)) not in UNFINISHED:
        finished = outcome == "finished"
        what = "holds a finished run" if finished else "does not hold a run that failed"
        raise InputError(
            f"{folder} {what}; `force=True` replaces failed and unfinished runs only. Name another "
            "directory, or delete this one yourself"
        )
    with alone(folder / LOCK, f"another process is running a run in {folder}"):
        files, folders = _own(folder)
        try:
            for path in sorted(files, key=lambda path: path.name == INFO):
                path.unlink(missing_ok=True)
            for path in sorted(folders, reverse=True):
                path.rmdir()
        except OSError as error:
            raise disk_error(folder, error, "The old run could not be deleted") from error


def _outcome(folder: Path) -> str:
    """How the run in a directory ended; "" if there is no run of ours."""
    try:
        if not (folder / INFO).is_file() or (folder / "sweep.json").exists():
            return ""
        info = read_info(folder)
    except (InputError, OSError):
        return ""
    ours = {"scenario", "scenario_sha256", "versions"} <= info.keys()
    return str(info.get("outcome")) if ours else ""


def _own(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and folders of a run; refuses a directory with others."""
    files: list[Path] = []
    folders: list[Path] = []
    for place, inner, names in os.walk(folder):
        here = Path(place)
        found = [(here / name, OWN_FOLDERS, folders) for name in inner]
        found += [(here / name, OWN_FILES, files) for name in names]
        for path, pattern, kept in found:
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() or not pattern.fullmatch(relative):
                raise InputError(
                    f"{path} is not a file of a run; `force=True` deletes nothing else. Move it "
                    "away, or name another directory"
                )
            if path.name != LOCK:
                kept.append(path)
    return files, folders
