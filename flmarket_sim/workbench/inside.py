"""Paths inside the folder of a workbench: a name never leads out of it, also not by a link."""

from __future__ import annotations

import os
from pathlib import Path

from flmarket_sim.errors import InputError, shown

LONGEST = 300  # letters of a name
MOST_FILES = 20_000  # looked at for links in one result


def result_path(folder: Path, name: str) -> Path:
    """The path of a result by its name in the folder, refused if it is outside or hidden."""
    parts = name.split("/")
    wrong = len(name) > LONGEST or "\\" in name or "\x00" in name or ":" in name
    if wrong or any(not part or part.startswith(".") for part in parts):
        raise InputError(f"{shown(name)} is not the name of a result in this folder")
    path, root = folder.joinpath(*parts), folder.resolve()
    if not path.exists():
        raise InputError(f"there is no {name} in this folder")
    if not path.resolve().is_relative_to(root):
        raise InputError(f"{name} leads out of this folder, so the workbench does not open it")
    if path.is_dir() and (link := _link_outside(path, root)) is not None:
        raise InputError(
            f"{name} has a link that leads out of this folder ({link}), so the workbench does "
            "not open it"
        )
    return path


def _link_outside(path: Path, root: Path) -> str | None:
    """The name of a link in a result that leads out of the folder; None if there is none.

    Kept models are left out: there may be many, and the workbench does not read them.
    """
    waiting, seen = [path], 0
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_FILES:
                    raise InputError(f"{path.name} has more than {MOST_FILES:,} files")
                if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(root):
                    return entry.name
                if entry.is_dir(follow_symlinks=False) and entry.name != "models":
                    waiting.append(Path(entry.path))
    return None
