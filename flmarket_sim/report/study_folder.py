"""A study's finding on disk and on the screen.

The files are table.md, rows.parquet (with drawn.parquet where the figure has rows of its own),
figure.png, figure.svg and study.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.report import figures
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import write_table, write_text
from flmarket_sim.storage.sealed_files import check_file, file_hash, read_sealed, sealed
from flmarket_sim.storage.untrusted_files import read_parquet, rows_of
from flmarket_sim.studies.study import Finding, Row
from flmarket_sim.tables.cells import PLAIN_BELOW, cell_of

FILES = ("rows.parquet", "drawn.parquet", "table.md", "figure.png", "figure.svg")
AGAIN = "Run the study again into another directory: the same scenario gives the same bytes"


@dataclass(frozen=True)
class FinishedStudy:
    """A study as read from its directory: rows, sentences and scenario."""

    rows: list[Row]
    sentences: list[str]
    scenario: dict[str, Any]


def read_study(directory: str | Path) -> FinishedStudy:
    """The finished study in a directory."""
    folder = Path(directory)
    try:
        facts = read_facts(folder)
        rows = read_rows(folder, "rows.parquet", facts)
        return FinishedStudy(rows, list(facts["sentences"]), dict(facts["scenario"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is not the directory of a study: {error}") from None


def read_facts(folder: Path) -> dict[str, Any]:
    """The content of study.json."""
    return read_sealed(folder / "study.json", AGAIN)


def read_rows(folder: Path, name: str, facts: dict[str, Any]) -> list[Row]:
    """The rows of a file of the study; they are those that study.json has a hash of."""
    check_study_file(folder, name, facts)
    return rows_of(folder / name, read_parquet(folder / name))


def check_study_file(folder: Path, name: str, facts: dict[str, Any]) -> None:
    """Refuses a file that does not have its hash. Studies of earlier versions have no hashes."""
    hashes = facts.get("files", {})
    if not isinstance(hashes, dict):
        raise InputError(f"{folder / 'study.json'} is damaged: 'files' does not name hashes")
    if name in hashes:
        check_file(folder / name, str(hashes[name]), "study.json", AGAIN)


def cells_of(rows: list[Row]) -> list[dict[str, str]]:
    """Rows for people: an estimate and its interval share a cell."""
    cells = []
    for row in rows:
        line = {}
        for key, value in row.items():
            if key.endswith(("_low", "_high")) and key.rsplit("_", 1)[0] in row:
                continue
            text = (
                "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
            )
            low = row.get(f"{key}_low")
            if isinstance(value, float) and abs(value) >= PLAIN_BELOW:
                text = cell_of(row, key)
            elif value is not None and low is not None and low == low:
                text = f"{value:.3f} [{row[f'{key}_low']:.3f}, {row[f'{key}_high']:.3f}]"
            line[key.replace("_", " ")] = text
        cells.append(line)
    return cells


def markdown(rows: list[Row]) -> str:
    lines = cells_of(rows)
    heads = list(lines[0])
    table = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return (
        "\n".join(
            table + ["| " + " | ".join(line[head] for head in heads) + " |" for line in lines]
        )
        + "\n"
    )


def write(finding: Finding, folder: Path, scenario: Scenario, also: Sequence[str] = ()) -> None:
    """Writes the finding, with its scenario and the hash of the scenario.

    `also` names files that are in the folder already, and whose hashes study.json gets too. That
    file comes last: it marks a finished study. No file holds a time, so the same study gives the
    same bytes.
    """
    rows, drawn = finding.rows, finding.drawn or finding.rows
    facts = {
        "scenario": scenario.as_dict(),
        "scenario_sha256": scenario.digest(),
        "sentences": finding.sentences,
        "intervals": finding.intervals,
        "plot": asdict(finding.plot),
        "shown": list(finding.shown_columns()),
    }
    try:
        write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
        if finding.drawn is not None:
            write_table(pa.Table.from_pylist(drawn), folder / "drawn.parquet")
        (folder / "table.md").write_text(markdown(rows), encoding="utf-8")
        for name in ("figure.png", "figure.svg"):
            figures.draw(drawn, finding.plot, folder / name)
        written = [name for name in (*FILES, *also) if (folder / name).exists()]
        facts["files"] = {name: file_hash(folder / name) for name in written}
        text = json.dumps(sealed(facts), indent=2, ensure_ascii=False) + "\n"
        write_text(folder / "study.json", text)
    except OSError as error:
        raise FlmarketError(f"the study cannot be written to {folder}: {error}") from None
