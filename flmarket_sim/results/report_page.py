"""`fm.report`: one HTML page about runs, sweeps, studies and probes."""

from __future__ import annotations

import html
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flmarket_sim.errors import FlmarketError, InputError
from flmarket_sim.report.figure_style import SCREEN, FigureStyle
from flmarket_sim.report.html import page, sources
from flmarket_sim.results.result import Result, ResultPart
from flmarket_sim.results.run_figure import round_rows, rounds_plot
from flmarket_sim.studies.study import Plot
from flmarket_sim.tables.result_table import ResultTable

AnyPath = str | os.PathLike[str]


def report(
    paths: AnyPath | Sequence[AnyPath], out: AnyPath | None = None, force: bool = False
) -> ReportPage:
    """Writes one self-contained HTML page with summary, interactive figures, tables and settings.

    Parameters
    ----------
    paths
        Directories of runs, sweeps and studies (or the objects that `fm.run`, `fm.sweep` and
        `fm.study` return), and Parquet files of probes. Several are compared.
    out
        The page; by default report.html in the directory, or here for a probe or several inputs.
    force
        Whether a page that is there already may be written over.
    """
    several: Any = paths if isinstance(paths, list | tuple) else [paths]
    places = [Path(path) for path in several]
    if not places:
        raise InputError("name at least one directory or file to report on")
    inside = len(places) == 1 and places[0].is_dir()
    usual = places[0] / "report.html" if inside else Path("report.html")
    written = page.write(places, usual if out is None else Path(out), force)
    return ReportPage(written, places)


@dataclass(frozen=True, repr=False)
class ReportPage(Result):
    """A report page. `path` is its file, and `inputs` are what it is about."""

    path: Path
    inputs: list[Path]

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @cached_property
    def table(self) -> ResultTable:
        """One row an input: its kind, its title, and where it is."""
        read = [(path, sources.read(path)) for path in self.inputs]
        return ResultTable.of(
            [
                {"kind": source.kind, "title": source.title, "path": str(path)}
                for path, source in read
            ]
        )

    @property
    def title(self) -> str:
        size = self.path.stat().st_size if self.path.exists() else 0
        return f"report page {self.path}, {size / 1000:,.0f} kB"

    def parts(self) -> list[ResultPart]:
        return [ResultPart(self.rows)]

    def drawing(self) -> tuple[list[dict[str, Any]], Plot]:
        """The rounds of the runs among the inputs; the page itself has every other figure."""
        runs = [path for path in self.inputs if (path / "run.json").exists()]
        if not runs:
            raise InputError(
                f"{self.path} is about no run; its figures are in the page, and those of a sweep, "
                "a study or a probe are drawn by the objects that fm.sweep, fm.study and fm.probe "
                "return"
            )
        several = len(runs) > 1
        rows = [row for run in runs for row in round_rows(run, run.name if several else "")]
        return rows, rounds_plot(rows)

    def save(self, path: str | os.PathLike[str], style: FigureStyle = SCREEN) -> Path:
        """Copies the page to a .html file; other suffixes are those of every result."""
        place = Path(path)
        if place.suffix.lower() not in (".html", ".htm"):
            return super().save(place, style)
        try:
            shutil.copyfile(self.path, place)
        except OSError as error:
            raise FlmarketError(f"the page cannot be written to {place}: {error}") from None
        return place

    def as_json(self) -> dict[str, Any]:
        return {"report": str(self.path), "bytes": self.path.stat().st_size}

    def _repr_html_(self) -> str:
        place = self.path.as_posix()
        address = quote(place if self.path.is_absolute() else f"./{place}")
        link = f'<a href="{address}" target="_blank">{html.escape(place)}</a>'
        return f"<p>{link}</p>\n{super()._repr_html_()}"
