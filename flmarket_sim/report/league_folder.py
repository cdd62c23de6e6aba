"""The league on disk: the folder of a study, and beside its files a table and a figure for papers.

table.csv and table.tex have a row for each mechanism over the whole card, league.png, league.svg
and league.pdf show it. study.json has their hashes.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from flmarket_sim.report import league_figure, study_folder
from flmarket_sim.scenario.model import Scenario
from flmarket_sim.studies.study import Finding
from flmarket_sim.tables.table_files import write_table

PICTURES = ("league.png", "league.svg", "league.pdf")
COLUMNS = {
    "table.csv": (
        "place", "auction", "over_floor", "gain", "records", "underpaid", "names_gain",
        "coalition_gain", "rest_error", "accuracy", "spent", "surplus", "invalid", "milliseconds",
        "card", "size",
    ),
    "table.tex": ("place", "auction", "over_floor", "gain", "rest_error", "accuracy"),  # of a page
}  # fmt: skip


def write(finding: Finding, folder: Path, scenario: Scenario) -> None:
    """Writes the finding of a league, with its scenario."""
    rows = finding.shown_rows or finding.rows
    for name, columns in COLUMNS.items():
        write_table(pa.Table.from_pylist(rows), folder / name, columns)
    for name in PICTURES:
        league_figure.draw(rows, folder / name)
    study_folder.write(finding, folder, scenario, also=(*COLUMNS, *PICTURES))
