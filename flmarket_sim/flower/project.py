"""Projects that `flwr run` starts: a pyproject, the client's app, the server's app, a scenario."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from flmarket_sim.errors import InputError
from flmarket_sim.scenario.model import Scenario, without_nulls
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.result_folders import claim, give_up

PACKAGE = "private_market"
FILES = ("README.md", "pyproject.toml")
INNER = ("__init__.py", "client.py", "own.py", "server.py", "scenario.toml")
DRAWN_SERVER = """\
from flmarket_sim.flower import server_app

app = server_app("scenario.json")
"""
DRAWN_CLIENT = """\
from flwr.clientapp import ClientApp

app = ClientApp()  # the owners of the scenario run as nodes of their own
"""
SCENARIO = "scenario.json"


def new_project(folder: Path) -> list[Path]:
    """Writes a project with a place for one's own model and data into a new or empty directory.

    Returns its files. The name of the directory becomes that of the project.
    """
    claim(folder, "project")
    try:
        source = files("flmarket_sim.flower") / "project_files"
        written = []
        for name in (*FILES, *(f"{PACKAGE}/{inner}" for inner in INNER)):
            text = (source / f"{name.rpartition('/')[2]}.txt").read_text(encoding="utf-8")
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            write_text(path, text.replace("PROJECT_NAME", project_name(folder)))
            written.append(path)
        return written
    finally:
        give_up(folder)


def project_name(folder: Path) -> str:
    """A name that Flower takes: letters, digits and hyphens."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
    if not name:
        raise InputError(f"{folder} gives a project no name; its name needs a letter")
    return name if name[0].isalpha() else f"market-{name}"


def drawn_project(folder: Path, scenario: Scenario) -> None:
    """Writes the project of a first try: its server holds the market of a scenario, and the owners
    whom the scenario draws are nodes beside it."""
    source = files("flmarket_sim.flower") / "project_files" / "pyproject.toml.txt"
    pyproject = source.read_text(encoding="utf-8").replace("PROJECT_NAME", "first-try")
    inner = folder / PACKAGE
    inner.mkdir(parents=True, exist_ok=True)
    drawn = 'drawn = true\nlifeline = ""'
    write_text(folder / "pyproject.toml", pyproject.replace("drawn = false", drawn))
    write_text(inner / "__init__.py", "")
    write_text(inner / "server.py", DRAWN_SERVER)
    write_text(inner / "client.py", DRAWN_CLIENT)
    write_text(folder / SCENARIO, json.dumps(without_nulls(scenario.as_dict())))
