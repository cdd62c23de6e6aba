"""A study's directory as part of a page: charts and a table of its rows, figure and sentences."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from flmarket_sim.errors import InputError
from flmarket_sim.report import study_folder
from flmarket_sim.report.html import from_plot
from flmarket_sim.report.html.generic import chart, is_number
from flmarket_sim.report.html.parts import ROWS, Chart, Source, Table, evenly, flattened, sampled
from flmarket_sim.statistics import Estimate

NOTE = "Bars and bands: 95 %."


def read(path: Path) -> Source:
    facts = study_folder.read_facts(path)
    rows = read_rows(path, "rows.parquet", facts)
    scenario = facts.get("scenario", {})
    estimates = [name for name in rows[0] if f"{name}_low" in rows[0]] if rows else []
    drawn_file = path / "drawn.parquet"
    has_drawn = drawn_file.exists() or drawn_file.name in facts.get("files", {})
    drawn = read_rows(path, drawn_file.name, facts) if has_drawn else rows
    study_folder.check_study_file(path, "figure.svg", facts)
    plot = from_plot.read_plot(facts, drawn)
    figures = from_plot.charts(drawn, plot, NOTE) if plot else []
    figures += _other_figures(rows, [name for name in estimates if not plot or name != plot.y])
    picture, sample = path / "figure.svg", evenly(rows, ROWS)
    intervals = str(facts.get("intervals", "Intervals: 95 %."))
    question = (scenario.get("study") or {}).get("name", "study")
    return Source(
        label=path.resolve().name,
        kind="study",
        title=scenario.get("name", path.name),
        description=scenario.get("description", ""),
        cards=[("question", str(question)), ("rows", str(len(rows)))],
        sentences=[str(sentence) for sentence in facts.get("sentences", [])],
        charts=figures,
        tables=[
            table(
                "study",
                "What was found",
                sample,
                f"{intervals} {sampled(len(sample), len(rows), 'rows')}".strip(),
            )
        ]
        if rows
        else [],
        picture=_picture(picture) if not plot and picture.exists() else "",
        settings=flattened(scenario),
        provenance={
            "scenario sha256": str(facts.get("scenario_sha256", "")),
            "seed": str(scenario.get("seed", "")),
        },
    )


def _other_figures(rows: list[dict[str, Any]], estimates: list[str]) -> list[Chart]:
    """A chart for each estimate that the study's own figure does not show."""
    if not rows:
        return []
    known = {name for name in rows[0] if f"{name}_low" in rows[0]}
    ends = {f"{name}{end}" for name in known for end in ("_low", "_high")}
    axes = _axes(rows, [name for name in rows[0] if name not in known and name not in ends])
    found = [
        chart(f"study-{name}", name.replace("_", " "), name, rows, axes, NOTE) for name in estimates
    ]
    return [figure for figure in found if figure is not None]


def _axes(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    """As few columns as distinguish the rows: first those of names, then those of numbers."""
    text = [name for name in columns if any(isinstance(row[name], str) for row in rows)]
    numbers = [
        name for name in columns if name not in text and all(is_number(row[name]) for row in rows)
    ]
    chosen: list[str] = []
    for name in text + numbers:
        if len({tuple(row[axis] for axis in chosen) for row in rows}) < len(rows):
            chosen.append(name)
    return chosen


def table(id: str, title: str, rows: list[dict[str, Any]], note: str = "Intervals: 95 %.") -> Table:
    """Rows with an estimate and its interval in one cell."""
    names = [
        name
        for name in rows[0]
        if not (name.endswith(("_low", "_high")) and name.rsplit("_", 1)[0] in rows[0])
    ]
    lines = []
    for row in rows:
        cells: list[Any] = []
        for name in names:
            interval = f"{name}_low" in row and row[name] is not None
            cells.append(
                Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"])
                if interval
                else row[name]
            )
        lines.append(cells)
    return Table(id, title, [name.replace("_", " ") for name in names], lines, note)


def _picture(path: Path) -> str:
    """The picture as an image address: an SVG inside <img> can neither run nor load anything."""
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()


def read_rows(path: Path, name: str, facts: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return study_folder.read_rows(path, name, facts)
    except FileNotFoundError as error:
        raise InputError(f"{path / name} cannot be read: {error}") from None
