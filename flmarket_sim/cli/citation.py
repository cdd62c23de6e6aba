"""How to cite this software and the paper; a test compares the facts here with CITATION.cff."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from flmarket_sim import __version__
from flmarket_sim.eventlog import read_run

SOFTWARE = {
    "author": "{The flmarket_sim authors}",
    "title": "flmarket_sim: a discrete-event laboratory for markets of locally private gradients",
    "version": __version__,
    "license": "MIT",
}
PAPER = {
    "author": "Zheng, Shuyuan and Cao, Yang and Yoshikawa, Masatoshi and Li, Huizhong and "
    "Yan, Qiang",
    "title": "FL-Market: Trading Private Models in Federated Learning",
    "booktitle": "2022 IEEE International Conference on Big Data (Big Data)",
    "year": "2022",
    "pages": "1525--1534",
    "publisher": "IEEE",
    "doi": "10.1109/BigData55660.2022.10020232",
}


@dataclass(frozen=True)
class RunFacts:
    """What identifies the market of a run; `version` is that of the software which ran it."""

    scenario: str
    sha256: str
    seed: int
    version: str


def run_facts(run: str | os.PathLike[str]) -> RunFacts:
    """The facts of a run, from its directory."""
    info = read_run(run)
    version = info.get("versions", {}).get("flmarket-sim", __version__)
    return RunFacts(info["scenario"]["name"], info["scenario_sha256"], info["seed"], str(version))


def as_dict(run: RunFacts | None = None) -> dict[str, Any]:
    """Everything for machines."""
    return {"software": SOFTWARE, "paper": PAPER} | ({} if run is None else {"run": vars(run)})


def as_bibtex(run: RunFacts | None = None) -> str:
    """Entries for BibTeX."""
    version = __version__ if run is None else run.version
    market = "" if run is None else f". {_market(run)}"
    software = {
        "author": SOFTWARE["author"],
        "title": f"{{{SOFTWARE['title']}}}",
        "note": f"Version {version}, {SOFTWARE['license']} licence{market}",
    }
    paper = PAPER | {"title": f"{{{PAPER['title']}}}"}
    entries = (("misc", "flmarket_sim", software), ("inproceedings", "zheng2022flmarket", paper))
    return "\n\n".join(_entry(*entry) for entry in entries)


def as_sentences(run: RunFacts | None = None) -> str:
    """The same in words."""
    people = PAPER["author"].replace(" and ", "; ")
    version = __version__ if run is None else run.version
    lines = [
        f"{SOFTWARE['author'].strip('{}')}. {SOFTWARE['title']}. Version {version}. "
        f"{SOFTWARE['license']} licence.",
        f"{people}. {PAPER['title']}. In: {PAPER['booktitle']}, {PAPER['publisher']}, "
        f"{PAPER['year']}, pages {PAPER['pages'].replace('--', ' to ')}. doi:{PAPER['doi']}",
    ]
    return "\n".join(lines + ([] if run is None else [f"{_market(run)}."]))


def _market(run: RunFacts) -> str:
    return f"Scenario {run.scenario}, SHA-256 {run.sha256}, seed {run.seed}"


def _entry(kind: str, key: str, fields: dict[str, str]) -> str:
    lines = [
        f"  {name} = {{{value.replace('_', chr(92) + '_')}}}," for name, value in fields.items()
    ]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
