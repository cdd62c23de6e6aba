"""A study's finding on disk and on the screen.

The files are table.md, rows.parquet (with drawn.parquet where the figure has rows of its own),
figure.png, figure.svg and study.json.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.report import figures
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.storage.atomic_files import write_text
from flmarket_sim.storage.untrusted_files import read_json, read_parquet, rows_of
from flmarket_sim.studies.study import Finding, Row
from flmarket_sim.tables.cells import PLAIN_BELOW, cell_of


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
        facts, rows = (
            read_json(folder / "study.json"),
            rows_of(folder / "rows.parquet", read_parquet(folder / "rows.parquet")),
        )
        return FinishedStudy(rows, list(facts["sentences"]), dict(facts["scenario"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} is not the directory of a study: {error}") from None


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


def write(finding: Finding, folder: Path, scenario: Scenario) -> None:
    """Writes the finding, with its scenario and the hash of the scenario.

    `study.json` comes last: it marks a finished study. No file holds a time, so the same study
    gives the same bytes.
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
        pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet", compression="zstd")
        if finding.drawn is not None:
            pq.write_table(pa.Table.from_pylist(drawn), folder / "drawn.parquet")
        (folder / "table.md").write_text(markdown(rows), encoding="utf-8")
        for name in ("figure.png", "figure.svg"):
            figures.draw(drawn, finding.plot, folder / name)
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
        write_text(folder / "study.json", text)
    except OSError as error:
        raise FlmarketError(f"the study cannot be written to {folder}: {error}") from None
